#include "lockstep/comm/round_to_wire.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

TEST(RoundToWire, AsLibtorchConverts) {
  for (const auto wire : {at::kBFloat16, at::kHalf}) {
    const at::Tensor values = at::randn({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
    const at::Tensor expected = values.detach().to(wire).to(at::kFloat);
    round_to_wire(wire, values);
    EXPECT_TRUE(at::equal(values, expected)) << wire;
  }
}

}  // namespace
}  // namespace lockstep::comm
