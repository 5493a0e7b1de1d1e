#include "lockstep/train/copy_stream.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/gpu.h"
#include "lockstep/train/device.h"

namespace lockstep::train {
namespace {

TEST(CopyStream, OnAGpuBringsWhatWasThereBeforeItsEvent) {
  LOCKSTEP_NEEDS_GPU();
  const at::Device device = open_device(DeviceKind::kCuda, {});
  const auto stream = copy_stream(device);
  const at::Tensor host = stream->pinned(at::arange(1 << 22));
  EXPECT_TRUE(host.is_pinned());
  EXPECT_TRUE(stream->pinned(host).is_same(host));
  at::Tensor there, sum;
  stream->run([&] {
    there = stream->copy(host);
    sum = there.add(1);
  });
  EXPECT_EQ(there.device(), device);
  const auto arrived = stream->record();
  arrived->compute_waits();
  stream->also_used_by_compute(sum);
  EXPECT_TRUE(at::equal(sum.mul(2).cpu(), host.add(1).mul(2)));
  arrived->host_waits();
  EXPECT_TRUE(at::equal(there.cpu(), host));
}

}  // namespace
}  // namespace lockstep::train
