#include "lockstep/comm/network/group_numbers.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace lockstep::comm {

at::Tensor GroupNumbers::in_use() const {
  const at::Tensor all = at::empty({kMost}, at::kByte);
  auto* const used = all.mutable_data_ptr<uint8_t>();
  for (int k = 0; k < kMost; ++k) used[k] = k <= kRail || used_[static_cast<size_t>(k)] ? 1 : 0;
  return all;
}

int GroupNumbers::first_free(const at::Tensor& in_use) {
  const auto* const begin = in_use.const_data_ptr<uint8_t>();
  const auto* const found = std::find(begin, begin + kMost, 0);
  return found == begin + kMost ? -1 : static_cast<int>(found - begin);
}

}  // namespace lockstep::comm
