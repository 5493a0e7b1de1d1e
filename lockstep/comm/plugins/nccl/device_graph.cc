#include "lockstep/comm/plugins/device_graph.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>

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
    std::vector<at::Tensor> results;
    {
      const c10::cuda::CUDAStreamGuard on_ours(stream_);
      wait_for(outside);
      results = work();
    }
    wait_for(stream_);
    for (const at::Tensor& result : results) result.record_stream(outside);  // they are used there
    return results;
  }

  std::vector<at::Tensor> record(const Work& work) override {
    graph_.emplace();
    const auto outside = c10::cuda::getCurrentCUDAStream();
    const c10::cuda::CUDAStreamGuard on_ours(stream_);
    wait_for(outside);
    // Other threads of the process go on calling CUDA: those that copy batches.
    graph_->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    try {
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
  // CUDA's own error of ending a recording that has failed says less than the one that made it fail.
  void end_failed() noexcept {
    try {
      graph_->capture_end();
    } catch (...) {
    }
    graph_.reset();
  }

  c10::cuda::CUDAStream stream_;
  std::optional<at::cuda::CUDAGraph> graph_;
};

}  // namespace
}  // namespace lockstep::comm

lockstep::comm::DeviceGraph* lockstep_make_device_graph() { return new lockstep::comm::CudaGraph(); }
