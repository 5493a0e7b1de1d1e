// The header of a safetensors file: a JSON object that says of each tensor its dtype, its shape and where its bytes
// lie.
//   {"__metadata__": {"format": "pt"}, "conv1.weight": {"dtype": "F32", "shape": [20, 1, 5, 5], "data_offsets": [0,
//   2000]}}
// The format is that of https://github.com/huggingface/safetensors.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::checkpoint {

inline constexpr std::string_view kMetadata = "__metadata__";
constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;  // bytes, as in the safetensors library
constexpr size_t kMaxSafetensorsTensors = 1u << 17;      // of a model; the largest known have some 90,000
constexpr size_t kMaxSafetensorsTexts = 1u << 16;        // of __metadata__

struct SafetensorsEntry {
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // of its bytes, counted from the end of the header
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;                                          // in the header's order
  std::optional<std::vector<std::pair<std::string, std::string>>> metadata = {};  // texts alone
};

// "F32" for at::kFloat; empty for a type that the format has not.
std::string_view safetensors_dtype(at::ScalarType dtype);

// The format's rank of a dtype: tensors of a higher one come first, so that each is aligned to its element's size.
int safetensors_rank(at::ScalarType dtype);

// Reads a header over `data_bytes` bytes of data. Throws a Fault that names the tensor: for unknown or missing fields,
// names that come twice, types that libtorch has not, shapes that don't fit their bytes, tensors that overlap, leave a
// hole or don't end with the data.
SafetensorsHeader read_safetensors_header(std::string_view json, uint64_t data_bytes);

}  // namespace lockstep::checkpoint
