#include "lockstep/checkpoint/formats/safetensors_writer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/files/atomic_file.h"
#include "lockstep/checkpoint/formats/dtype.h"
#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/safetensors_header.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"

namespace lockstep::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little);

struct Named {
  std::string name;
  at::Tensor tensor;
};

uint64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<uint64_t>(tensor.numel()) * static_cast<uint64_t>(tensor.itemsize());
}

// Texts in the order of their names, as the library has them.
nlohmann::json metadata_of(const Dict& root) {
  const Value* given = root.find(std::string(kMetadata));
  if (given == nullptr) return {{"format", "pt"}};
  nlohmann::json texts = nlohmann::json::object();
  const auto* dict = given->get_if<Dict>();
  if (dict == nullptr)
    throw ConfigError(kMetadata, ": ", given->kind(), "; a safetensors file has a dict of texts there");
  for (const auto& [key, value] : *dict) {
    const auto* text = value.get_if<std::string>();
    if (text == nullptr)
      throw ConfigError(kMetadata, ": ", printable(key_text(key)), ": ", value.kind(), ", not a text");
    texts[key_text(key)] = *text;
  }
  return texts;
}

// In the order of the library: types of high alignment first, then by name.
std::vector<Named> ordered_tensors(const Dict& root) {
  std::vector<Named> tensors;
  for (const auto& [key, value] : root) {
    const std::string name = key_text(key);
    if (name == kMetadata) continue;
    const auto* tensor = value.get_if<at::Tensor>();
    if (tensor == nullptr)
      throw ConfigError(printable(name), ": ", value.kind(), "; a safetensors file holds tensors alone");
    if (tensor->layout() != at::kStrided)
      throw ConfigError(printable(name), ": not a dense tensor; call to_dense() first");
    if (safetensors_dtype(tensor->scalar_type()).empty()) {
      throw ConfigError(printable(name), ": ", dtype_name(tensor->scalar_type()),
                        ", which safetensors has not; write a .pt file");
    }
    tensors.push_back({name, *tensor});
  }
  std::sort(tensors.begin(), tensors.end(), [](const Named& a, const Named& b) {
    const int ranks[] = {safetensors_rank(a.tensor.scalar_type()), safetensors_rank(b.tensor.scalar_type())};
    return ranks[0] != ranks[1] ? ranks[0] > ranks[1] : a.name < b.name;
  });
  return tensors;
}

std::string header_of(const nlohmann::json& metadata, const std::vector<Named>& tensors) {
  Json header = Json::object();
  auto& entries = static_cast<Json::object_t::Container&>(header.get_ref<Json::object_t&>());
  if (!metadata.empty()) entries.emplace_back(kMetadata, metadata);
  uint64_t begin = 0;
  for (const auto& [name, tensor] : tensors) {
    const uint64_t end = begin + bytes_of(tensor);
    Json shape = Json::array();
    for (const int64_t size : tensor.sizes()) shape.push_back(size);
    entries.emplace_back(name, Json{{"dtype", safetensors_dtype(tensor.scalar_type())},
                                    {"shape", std::move(shape)},
                                    {"data_offsets", {begin, end}}});
    begin = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::type_error&) {
    throw ConfigError("a tensor's name or a text is no UTF-8, which a safetensors file needs");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kMaxSafetensorsHeader) {
    throw ConfigError(tensors.size(), " tensors need a header of ", human_bytes(text.size()),
                      "; safetensors has at most ", human_bytes(kMaxSafetensorsHeader));
  }
  return text;
}

// The tensor's elements in row-major order: its own memory, where they are in that order there.
at::Tensor row_major(const at::Tensor& tensor) {
  if (!is_stored(tensor)) return tensor.detach().cpu().contiguous().resolve_conj().resolve_neg();
  at::Tensor dense = at::empty(tensor.sizes(), tensor.scalar_type());
  copy_elements(dense, tensor);
  return dense;
}

}  // namespace

void write_safetensors(const Dict& root, ByteSink& sink) {
  const std::vector<Named> tensors = ordered_tensors(root);
  const std::string header = header_of(metadata_of(root), tensors);
  const uint64_t length = header.size();
  sink.write({reinterpret_cast<const char*>(&length), sizeof length});
  sink.write(header);
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor dense = row_major(tensor);
    sink.write({static_cast<const char*>(dense.const_data_ptr()), bytes_of(dense)});
  }
}

void write_safetensors(const Dict& tensors, const std::string& path, const std::function<void()>& on_progress) {
  const auto write = [&](ByteSink& sink) {
    try {
      write_safetensors(tensors, sink);
    } catch (const ConfigError& error) {
      throw ConfigError(path, " can't be written: ", error.what());
    }
  };
  write_atomically(path, write, on_progress);
}

}  // namespace lockstep::checkpoint
