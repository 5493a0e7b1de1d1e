#include "plain_add.h"

#include <algorithm>
#include <array>

namespace lockstep::worker {
namespace {

void add_two(float* a, float* b, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

// By blocks that stay in the first cache, so that memory sees each array once.
void add_all(std::vector<std::vector<float>>& arrays, size_t count) {
  constexpr size_t kBlock = 1024;
  std::array<float, kBlock> sum{};
  for (size_t start = 0; start < count; start += kBlock) {
    const size_t size = std::min(kBlock, count - start);
    std::fill_n(sum.data(), size, 0.0F);
    for (const auto& array : arrays) {
      for (size_t i = 0; i < size; ++i) sum[i] += array[start + i];
    }
    for (auto& array : arrays) std::copy_n(sum.data(), size, array.data() + start);
  }
}

}  // namespace

PlainAdd::PlainAdd(int64_t bytes, int ranks) {
  const auto elements = static_cast<size_t>(bytes / 4);
  const size_t slice = (elements + static_cast<size_t>(ranks) - 1) / static_cast<size_t>(ranks);
  arrays_.assign(static_cast<size_t>(ranks), std::vector<float>(slice, 0.0F));
}

void PlainAdd::run() {
  if (arrays_.size() == 2) {
    add_two(arrays_[0].data(), arrays_[1].data(), arrays_[0].size());
  } else {
    add_all(arrays_, arrays_[0].size());
  }
}

}  // namespace lockstep::worker
