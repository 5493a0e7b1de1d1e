#include "lockstep/train/copy_stream.h"

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace lockstep::train {
namespace {

c10::Stream current_stream(c10::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

class DeviceArrival final : public Arrival {
 public:
  explicit DeviceArrival(const c10::Stream& stream) : device_(stream.device()), event_(device_.type()) {
    event_.record(stream);
  }
  void compute_waits() override { event_.block(current_stream(device_)); }
  void host_waits() override { event_.synchronize(); }

 private:
  c10::Device device_;
  c10::Event event_;
};

class DeviceStream final : public CopyStream {
 public:
  explicit DeviceStream(c10::Device device)
      : stream_(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device)) {}

  void run(const std::function<void()>& work) override {
    const c10::StreamGuard on_this(stream_);
    work();
  }
  at::Tensor pinned(const at::Tensor& host) override { return host.pin_memory(); }
  at::Tensor copy(const at::Tensor& pinned) override { return pinned.to(stream_.device(), /*non_blocking=*/true); }
  std::unique_ptr<Arrival> record() override { return std::make_unique<DeviceArrival>(stream_); }
  void also_used_by_compute(const at::Tensor& on_device) override {
    on_device.record_stream(current_stream(stream_.device()));
  }

 private:
  c10::Stream stream_;
};

}  // namespace

std::unique_ptr<CopyStream> copy_stream(c10::Device device) { return std::make_unique<DeviceStream>(device); }

}  // namespace lockstep::train
