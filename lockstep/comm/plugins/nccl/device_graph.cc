#include "lockstep/comm/plugins/device_graph.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/ScopeExit.h>

#include <mutex>
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
    pool_ = at::cuda::graph_pool_handle();
    try {
      // Other threads of the process go on calling CUDA: those that copy batches.
      graph_->capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
      std::vector<at::Tensor> results = work();
      graph_->capture_end();
      return results;
    } catch (...) {
      end_failed();
      throw;
    }
  }

  void replay() override { graph_->replay(); }

 private:
  // CUDA's own error of ending a recording that has failed says less than the one that made it fail. libtorch 2.11 then
  // throws before it has ended what it had begun: the pool's allocations, and the generator's offsets.
  void end_failed() noexcept {
    const auto device = stream_.device_index();
    try {
      graph_->capture_end();
    } catch (...) {
      try {
        c10::cuda::CUDACachingAllocator::endAllocateToPool(device, pool_);
        c10::cuda::CUDACachingAllocator::releasePool(device, pool_);
      } catch (...) {  // it had ended that
      }
    }
    try {
      at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator(device);
      const std::lock_guard lock(generator.mutex());
      generator.graphsafe_set_state(generator.clone().graphsafe_get_state());
    } catch (...) {
    }
    graph_.reset();
  }

  c10::cuda::CUDAStream stream_;
  std::optional<at::cuda::CUDAGraph> graph_;
  c10::cuda::MempoolId_t pool_ = {0, 0};
};

}  // namespace
}  // namespace lockstep::comm

lockstep::comm::DeviceGraph* lockstep_make_device_graph() { return new lockstep::comm::CudaGraph(); }
