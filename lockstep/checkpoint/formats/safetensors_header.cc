#include "lockstep/checkpoint/formats/safetensors_header.h"

#include <algorithm>
#include <iterator>

#include "lockstep/checkpoint/formats/bounded_json.h"
#include "lockstep/checkpoint/formats/byte_cursor.h"
#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/tensor_geometry.h"

namespace lockstep::checkpoint {
namespace {

struct Row {
  std::string_view name;
  at::ScalarType dtype;
};

// In the order of the library's own list, from which it has the order of tensors in a file.
constexpr Row kRows[] = {
    {"BOOL", at::kBool},
    {"U8", at::kByte},
    {"I8", at::kChar},
    {"F8_E5M2", at::kFloat8_e5m2},
    {"F8_E4M3", at::kFloat8_e4m3fn},
    {"F8_E8M0", at::kFloat8_e8m0fnu},
    {"F8_E4M3FNUZ", at::kFloat8_e4m3fnuz},
    {"F8_E5M2FNUZ", at::kFloat8_e5m2fnuz},
    {"I16", at::kShort},
    {"U16", at::kUInt16},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"I32", at::kInt},
    {"U32", at::kUInt32},
    {"F32", at::kFloat},
    {"C64", at::kComplexFloat},
    {"F64", at::kDouble},
    {"I64", at::kLong},
    {"U64", at::kUInt64},
};

at::ScalarType dtype_called(const std::string& name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  throw Fault{cat("its type ", printable(name), " is none that is known here")};
}

// The bytes of a tensor; a Fault if no memory has so many.
uint64_t bytes_of(const SafetensorsEntry& entry) {
  uint64_t bytes = c10::elementSize(entry.dtype);
  bool empty = false, overflow = false;
  for (const int64_t size : entry.shape) {
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(bytes, std::max<uint64_t>(static_cast<uint64_t>(size), 1), &bytes);
  }
  if (overflow || bytes > uint64_t{1} << 62) throw Fault{"a shape that no memory holds"};
  return empty ? 0 : bytes;
}

// Calls get(), and names the tensor in its fault.
template <typename Get>
auto named(const std::string& name, const Get& get) {
  try {
    return get();
  } catch (const Fault& fault) {
    throw Fault{cat(printable(name), ": ", fault.text)};
  }
}

// Collects the entries of the header's object. An entry is complete when the next begins.
class HeaderVisitor : public JsonVisitor {
 public:
  SafetensorsHeader header;

  void object(const Path& path) override {
    if (path.empty()) return;
    if (path.size() > 1) throw Fault{cat(path_text(path), ": an object where none belongs")};
    finish_entry();
    if (path[0] == kMetadata) {
      header.metadata.emplace();
      return;
    }
    if (header.tensors.size() == kMaxSafetensorsTensors) {
      throw Fault{cat("more than ", kMaxSafetensorsTensors, " tensors")};
    }
    header.tensors.push_back({.name = path[0]});
    seen_ = {};
  }

  void array(const Path& path) override {
    bool* const seen = !in_tensor(path)            ? nullptr
                       : path[1] == "shape"        ? &seen_.shape
                       : path[1] == "data_offsets" ? &seen_.offsets
                                                   : nullptr;
    if (seen == nullptr || *seen) throw Fault{cat(path_text(path), ": a list where none belongs")};
    *seen = true;
  }

  void text(const Path& path, const std::string& value) override {
    if (path.size() == 2 && path[0] == kMetadata) {
      if (header.metadata->size() == kMaxSafetensorsTexts) {
        throw Fault{cat(kMetadata, ": more than ", kMaxSafetensorsTexts, " texts")};
      }
      header.metadata->emplace_back(path[1], value);
    } else if (in_tensor(path) && path[1] == "dtype") {
      header.tensors.back().dtype = named(path[0], [&] { return dtype_called(value); });
      seen_.dtype = true;
    } else {
      throw Fault{cat(path_text(path), ": a text where none belongs")};
    }
  }

  void number(const Path& path, uint64_t value) override {
    if (!in_tensor(path)) throw Fault{cat(path_text(path), ": a number where none belongs")};
    SafetensorsEntry& entry = header.tensors.back();
    if (path[1] == "shape" && seen_.shape) {
      if (entry.shape.size() == 64 || value > uint64_t{1} << 62)
        throw Fault{cat(path_text(path), ": no memory holds it")};
      entry.shape.push_back(static_cast<int64_t>(value));
    } else if (path[1] == "data_offsets" && seen_.offsets && seen_.numbers < 2) {
      (seen_.numbers++ == 0 ? entry.begin : entry.end) = value;
    } else {
      throw Fault{cat(path_text(path), ": a number where none belongs")};
    }
  }

  void other(const Path& path, std::string_view what) override {
    throw Fault{cat(path_text(path), ": ", what, " where none belongs")};
  }

  void finish() { finish_entry(); }

 private:
  struct Seen {
    bool dtype = false, shape = false, offsets = false;
    int numbers = 0;  // of data_offsets
  };

  static bool in_tensor(const Path& path) { return path.size() == 2 && path[0] != kMetadata; }

  void finish_entry() {
    if (header.tensors.empty() || finished_ == header.tensors.size()) return;
    finished_ = header.tensors.size();
    const SafetensorsEntry& entry = header.tensors.back();
    const bool complete = seen_.dtype && seen_.shape && seen_.numbers == 2;
    if (!complete) throw Fault{cat(printable(entry.name), ": lacks its dtype, shape or data_offsets")};
    const uint64_t bytes = named(entry.name, [&] { return bytes_of(entry); });
    if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
      throw Fault{cat(printable(entry.name), ": data_offsets ", entry.begin, " to ", entry.end, ", its shape needs ",
                      bytes, " bytes")};
    }
  }

  Seen seen_;
  size_t finished_ = 0;
};

// Tensors follow each other from the first byte of the data to the last, as the library demands.
void check_places(const std::vector<SafetensorsEntry>& tensors, uint64_t data_bytes) {
  std::vector<const SafetensorsEntry*> ordered;
  for (const SafetensorsEntry& entry : tensors) ordered.push_back(&entry);
  std::sort(ordered.begin(), ordered.end(),
            [](const auto* a, const auto* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
  uint64_t next = 0;
  for (const SafetensorsEntry* entry : ordered) {
    if (entry->end > data_bytes) {
      throw Fault{cat(printable(entry->name), ": ends at byte ", entry->end, " of the data, and the file has ",
                      data_bytes, "; it is cut short, or hostile")};
    }
    if (entry->begin != next) {
      throw Fault{cat(printable(entry->name), ": begins at byte ", entry->begin,
                      " of the data, the tensor before ends at ", next)};
    }
    next = entry->end;
  }
  if (next != data_bytes)
    throw Fault{cat("its tensors end at byte ", next, " of the data, and the file has ", data_bytes)};
}

}  // namespace

std::string_view safetensors_dtype(at::ScalarType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return row.name;
  }
  return "";
}

int safetensors_rank(at::ScalarType dtype) {
  int rank = 0;
  while (rank < static_cast<int>(std::size(kRows)) && kRows[rank].dtype != dtype) ++rank;
  return rank;
}

SafetensorsHeader read_safetensors_header(std::string_view json, uint64_t data_bytes) {
  constexpr size_t kDepth = 3;
  HeaderVisitor visitor;
  read_json(json, kDepth, visitor);
  visitor.finish();
  check_places(visitor.header.tensors, data_bytes);
  return std::move(visitor.header);
}

}  // namespace lockstep::checkpoint
