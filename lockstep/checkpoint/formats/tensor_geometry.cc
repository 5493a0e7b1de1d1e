#include "lockstep/checkpoint/formats/tensor_geometry.h"

#include <algorithm>

#include "lockstep/base/text.h"

namespace lockstep::checkpoint {
namespace {

constexpr size_t kMaxDimensions = 64;  // of libtorch

std::string listed(const std::vector<int64_t>& numbers) {
  std::string text = "[";
  for (const int64_t number : numbers) text += (text.size() > 1 ? ", " : "") + std::to_string(number);
  return text + "]";
}

bool any_negative(const std::vector<int64_t>& numbers) {
  return std::any_of(numbers.begin(), numbers.end(), [](int64_t number) { return number < 0; });
}

}  // namespace

std::string geometry_fault(const TensorGeometry& geometry, int64_t storage_elements) {
  const auto& [offset, sizes, strides] = geometry;
  if (sizes.size() > kMaxDimensions) return cat("a tensor of ", sizes.size(), " dimensions");
  if (sizes.size() != strides.size())
    return cat("a tensor of ", sizes.size(), " sizes and ", strides.size(), " strides");
  if (offset < 0) return cat("a tensor at the negative offset ", offset);
  if (any_negative(sizes)) return cat("a tensor of the negative size ", listed(sizes));
  if (any_negative(strides)) return cat("a tensor of the negative strides ", listed(strides));

  int64_t count = 1;  // with empty dimensions left out, as libtorch multiplies the others even so
  int64_t last = offset;
  bool overflow = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t reach = 0;
    overflow |= __builtin_mul_overflow(count, std::max<int64_t>(sizes[i], 1), &count);
    overflow |= __builtin_mul_overflow(std::max<int64_t>(sizes[i] - 1, 0), strides[i], &reach);
    overflow |= __builtin_add_overflow(last, reach, &last);
  }
  if (overflow) return cat("a tensor of the size ", listed(sizes), ", which no memory holds");
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return "";
  if (last >= storage_elements) {
    return cat("a tensor that reaches element ", last, " of a storage of ", storage_elements, " (size ", listed(sizes),
               ", strides ", listed(strides), ", offset ", offset, ")");
  }
  return "";
}

int64_t element_count(const TensorGeometry& geometry) {
  int64_t count = 1;
  for (const int64_t size : geometry.sizes) count *= size;
  return count;
}

int64_t element_end(const TensorGeometry& geometry) {
  if (element_count(geometry) == 0) return geometry.offset;
  int64_t last = geometry.offset;
  for (size_t i = 0; i < geometry.sizes.size(); ++i) last += (geometry.sizes[i] - 1) * geometry.strides[i];
  return last + 1;
}

}  // namespace lockstep::checkpoint
