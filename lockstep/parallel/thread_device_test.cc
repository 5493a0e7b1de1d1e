#include "lockstep/parallel/thread_device.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <gtest/gtest.h>

#include <thread>
#include <utility>

namespace lockstep::parallel {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;

// A stand-in for CUDA's guard: each thread has a current device and a stream, at first device 0 and its default stream.
thread_local c10::Device t_device(kType, 0);
thread_local c10::Stream t_stream(c10::Stream::DEFAULT, c10::Device(kType, 0));

struct RecordingGuard final : c10::impl::NoOpDeviceGuardImpl<kType> {
  c10::Device getDevice() const override { return t_device; }
  void setDevice(c10::Device device) const override { t_device = device; }
  c10::Stream getStream(c10::Device) const noexcept override { return t_stream; }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return std::exchange(t_stream, stream); }
  c10::DeviceIndex deviceCount() const noexcept override { return 0; }  // autograd starts no threads for it
};
const RecordingGuard kGuard;
const c10::impl::DeviceGuardImplRegistrar kRegistrar(kType, &kGuard);

TEST(ThreadDevice, GoesAlongToAnotherThread) {
  const c10::Device gpu(kType, 3);
  const c10::Stream stream(c10::Stream::UNSAFE, gpu, 7);
  t_device = gpu;
  t_stream = stream;
  const ThreadDevice device(kType);
  std::thread([&] {
    EXPECT_EQ(t_device.index(), 0);
    device.set();
    EXPECT_EQ(t_device, gpu);
    EXPECT_EQ(t_stream, stream);
  }).join();
}

TEST(ThreadDevice, WithoutAGpuThereIsNothingToSet) {
  t_device = c10::Device(kType, 2);
  ThreadDevice(std::nullopt).set();
  EXPECT_EQ(t_device.index(), 2);
}

}  // namespace
}  // namespace lockstep::parallel
