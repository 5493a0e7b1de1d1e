#include "lockstep/comm/plugins/device_graph.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/ScopeExit.h>

#include <optional>
#include <vector>

namespace lockstep::comm {
namespace {

// The current stream waits for what is queued on the other by now.
void wait_for(const c10::cuda::CUDAStream& other) {
  at::cuda::CUDAEvent queued;
  queued.record(other);
  queued.block(c10::cuda::getCurrentCUDAStream());
}

size_t reserved_bytes(c10::DeviceIndex device) {
  using c10::CachingAllocator::StatType;
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device);
  return static_cast<size_t>(stats.reserved_bytes[static_cast<size_t>(StatType::AGGREGATE)].current);
}

// libtorch 2.11 does not take back all that it began for a recording that has failed.
struct Recording final : at::cuda::CUDAGraph {
  void let_generators_draw() {
    for (const auto& [state, draws] : captured_generator_states_) state->capturing_ = false;
  }
};

class CudaGraph final : public DeviceGraph {
 public:
  CudaGraph() : stream_(c10::cuda::getStreamFromPool()) {}

  std::vector<at::Tensor> rehearse(const Work& work) override {
    const auto outside = c10::cuda::getCurrentCUDAStream();
    const auto rejoin = c10::make_scope_exit([&] { wait_for(stream_); });  // also after an error
    std::vector<at::Tensor> results;
    {
      const c10::cuda::CUDAStreamGuard on_ours(stream_);
      wait_for(outside);
      results = work();
    }
    for (const at::Tensor& result : results) result.record_stream(outside);  // they are used there
    return results;
  }

  std::vector<at::Tensor> record(const Work& work) override {
    // What the steps before have left free can't be freed during a recording, and is not its own.
    c10::cuda::device_synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
    const auto outside = c10::cuda::getCurrentCUDAStream();
    const c10::cuda::CUDAStreamGuard on_ours(stream_);
    wait_for(outside);
    graph_.emplace();
    const size_t before = reserved_bytes(stream_.device_index());
    pool_ = at::cuda::graph_pool_handle();
    try {
      // Other threads of the process go on calling CUDA: those that copy batches.
      graph_->capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
      std::vector<at::Tensor> results = work();
      graph_->capture_end();
      const size_t after = reserved_bytes(stream_.device_index());
      bytes_ = after > before ? after - before : 0;
      return results;
    } catch (...) {
      end_failed();
      throw;
    }
  }

  void replay() override { graph_->replay(); }

  void forget() override { graph_.reset(); }

  bool has_room_beside() override {
    const auto room = [this] {
      size_t unused = 0, all = 0;
      C10_CUDA_CHECK(cudaMemGetInfo(&unused, &all));
      return unused >= bytes_;
    };
    if (!graph_ || room()) return true;
    c10::cuda::CUDACachingAllocator::emptyCache();
    return room();
  }

 private:
  // CUDA's own error of ending a recording that has failed says less than the one that made it fail. libtorch then
  // throws before it has ended what it had begun: the pools of both allocators, and the generators' draws.
  void end_failed() noexcept {
    const auto ends = [](const auto& end) {
      try {
        end();
        return true;
      } catch (...) {
        return false;
      }
    };
    if (!ends([&] { graph_->capture_end(); })) {
      const auto device = stream_.device_index();
      ends([&] {
        c10::cuda::CUDACachingAllocator::endAllocateToPool(device, pool_);
        c10::cuda::CUDACachingAllocator::releasePool(device, pool_);
      });
      ends([&] {
        at::HostAllocator* const host = at::getHostAllocator(at::kCUDA);
        host->end_allocate_to_pool(pool_);
        host->release_pool(pool_);
      });
      graph_->let_generators_draw();
    }
    graph_.reset();
  }

  c10::cuda::CUDAStream stream_;
  std::optional<Recording> graph_;
  c10::cuda::MempoolId_t pool_ = {0, 0};
  size_t bytes_ = 0;  // that the recording's tensors take
};

}  // namespace
}  // namespace lockstep::comm

lockstep::comm::DeviceGraph* lockstep_make_device_graph() { return new lockstep::comm::CudaGraph(); }
