#include "lockstep/checkpoint/formats/paddle_reader.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/byte_cursor.h"
#include "lockstep/checkpoint/formats/legacy_reader.h"
#include "lockstep/checkpoint/formats/pickle_reader.h"
#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/value_view.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view kPieces = "UnpackBigParamInfor@@";
constexpr uint64_t kMaxFileBytes = std::numeric_limits<uint32_t>::max();

// The array as the tensor that paddle.load makes of it.
at::Tensor paddles(const at::Tensor& array) {
  return array.scalar_type() == at::kUInt16 ? array.view(at::kBFloat16) : array;
}

// The tensor of a tuple (name, array).
const at::Tensor* named_tensor(const Value& value) {
  const auto* tuple = value.get_if<Tuple>();
  if (tuple == nullptr || tuple->items.size() != 2 || tuple->items[0].get_if<std::string>() == nullptr) return nullptr;
  return tuple->items[1].get_if<at::Tensor>();
}

Value converted(const Value& value) {
  if (const auto* array = value.get_if<at::Tensor>()) return paddles(*array);
  if (const auto* tensor = named_tensor(value)) return paddles(*tensor);
  if (const auto* dict = value.get_if<Dict>()) {
    Dict result;
    result.reserve(dict->size());
    for (const auto& [key, item] : *dict) result.set(key, converted(item));
    return result;
  }
  const List* items = value.items();
  if (items == nullptr) return value;
  List result;
  result.reserve(items->size());
  for (const Value& item : *items) result.push_back(converted(item));
  return value.get_if<Tuple>() != nullptr ? Value(Tuple{std::move(result)}) : Value(std::move(result));
}

bool has_tensors(const Value& value) {
  if (value.is_tensor()) return true;
  if (const auto* dict = value.get_if<Dict>()) {
    return std::any_of(dict->begin(), dict->end(), [](const auto& entry) { return has_tensors(entry.value); });
  }
  const List* items = value.items();
  return items != nullptr && std::any_of(items->begin(), items->end(), has_tensors);
}

// Whether the pickle has what paddle.save marks its tensors by: a table of names, or a name beside each tensor.
bool is_marked(const Value& value) {
  if (named_tensor(value) != nullptr) return true;
  if (const auto* dict = value.get_if<Dict>()) {
    return dict->contains(std::string(kPaddleNames)) || dict->contains(std::string(kPieces)) ||
           std::any_of(dict->begin(), dict->end(), [](const auto& entry) { return is_marked(entry.value); });
  }
  const List* items = value.items();
  return items != nullptr && std::any_of(items->begin(), items->end(), is_marked);
}

std::vector<int64_t> shape_of(const ValueView& info, int64_t& elements) {
  std::vector<int64_t> shape;
  elements = 1;
  for (const ValueView& size : info["OriginShape"].items()) {
    shape.push_back(size.integer());
    if (shape.back() < 0 || __builtin_mul_overflow(elements, shape.back(), &elements)) {
      throw DataError(size.where(), ": a shape of ", shape.back());
    }
  }
  return shape;
}

at::Tensor joined(const ValueView& root, const ValueView& info) {
  std::vector<at::Tensor> pieces;
  int64_t found = 0, elements = 0;
  for (const ValueView& name : info["slices"].items()) {
    pieces.push_back(root[name.text()].tensor());
    found += pieces.back().numel();
    if (pieces.back().dim() != 1 || pieces.back().scalar_type() != pieces[0].scalar_type()) {
      throw DataError(name.where(), ": not a piece of an array");
    }
  }
  const std::vector<int64_t> shape = shape_of(info, elements);
  if (pieces.empty() || found != elements) throw DataError(info.where(), ": its pieces do not make its shape");
  return at::cat(pieces).view(shape);
}

// The names of all pieces, in order. One that is named twice is an error: it could be copied any number of times.
std::vector<std::string> piece_names(const ValueView& infos) {
  std::vector<std::string> names;
  for (const auto& [key, info] : infos.dict()) {
    for (const ValueView& name : infos[key]["slices"].items()) names.push_back(name.text());
  }
  std::sort(names.begin(), names.end());
  if (std::adjacent_find(names.begin(), names.end()) != names.end()) {
    throw DataError(infos.where(), ": one piece in two places");
  }
  return names;
}

// Puts arrays together that were cut into pieces.
Dict with_joined_pieces(const Dict& root, const Value& whole, const std::string& path) {
  const ValueView view(whole, path), infos = view[std::string(kPieces)];
  const std::vector<std::string> pieces = piece_names(infos);
  Dict result;
  for (const auto& [key, value] : root) {
    const std::string name = key_text(key);
    if (name != kPieces && !std::binary_search(pieces.begin(), pieces.end(), name)) result.set(key, value);
  }
  for (const auto& [key, info] : infos.dict()) result.set(key, joined(view, infos[key]));
  return result;
}

}  // namespace

bool is_paddle(std::string_view start) {
  constexpr char kOldest = 2, kNewest = 5;
  return start.size() > 2 && start[0] == '\x80' && start[1] >= kOldest && start[1] <= kNewest && !is_legacy_pt(start);
}

bool is_paddle_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return false;  // of safetensors
  const InputFile file = open_input(path);
  std::string start(std::min<uint64_t>(file.bytes, 64), '\0');
  read_at(file.fd.get(), path, 0, start.data(), start.size());
  return is_paddle(start);
}

Value read_paddle(const std::string& path, const InputFile& file, const ReadOptions& options) {
  if (file.bytes > kMaxFileBytes) {
    throw DataError(path, ": a pickle of ", human_bytes(file.bytes), "; only those below 4 GiB are read");
  }
  const auto stored = std::make_shared<StoredFile>(path, file);
  const PickleBytes pickle(stored, file.bytes);
  MemoryBudget budget(kReadingMemory / 2);  // the tree is copied below
  PickleResult result = read_pickle(pickle, {.name = cat(path, ": pickle"),
                                             .max_tensor_bytes = max_tensor_bytes(file.bytes),
                                             .budget = &budget,
                                             .ignore_unknown = options.ignore_unknown,
                                             .max_bytes = kMaxFileBytes});
  if (result.bytes_read != pickle.size()) {
    throw DataError(path, ": ", pickle.size() - result.bytes_read, " bytes follow its pickle, which ends at byte ",
                    result.bytes_read);
  }
  stored->check_unchanged();  // its parts were read at different times
  if (has_tensors(result.value) && !is_marked(result.value)) {
    throw DataError(path,
                    ": a pickle with arrays, but none of paddle.save; save them with torch.save or as safetensors");
  }
  const auto* dict = result.value.get_if<Dict>();
  if (dict != nullptr && dict->contains(std::string(kPieces))) {
    return converted(with_joined_pieces(*dict, result.value, path));
  }
  return converted(result.value);
}

}  // namespace lockstep::checkpoint
