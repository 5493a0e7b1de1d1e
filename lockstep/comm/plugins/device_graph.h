// Operations of a GPU that are recorded once and then done by one launch, in the plug-in liblockstep_cuda.so
// (nccl_plugin.h): CUDA graphs, by libtorch's at::cuda::CUDAGraph.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

namespace lockstep::comm {

// For the GPU that is current when it is made. One thread, but for autograd's.
class DeviceGraph {
 public:
  DeviceGraph() = default;
  virtual ~DeviceGraph();
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;

  // Queues operations on the current stream, and returns the tensors that have their results.
  using Work = std::function<std::vector<at::Tensor>()>;

  // Does the work on the stream that record() records on: behind what is queued on the current stream, which goes on
  // behind it. Libraries of the GPU make what they need for a stream at its first use, which can't be recorded.
  virtual std::vector<at::Tensor> rehearse(const Work& work) = 0;
  // Records the work, which is not done. The results get their values from replay(), each time anew. The memory of all
  // its tensors stays the graph's own. Throws what `work` throws, and c10::Error where an operation can't be recorded,
  // such as one that waits for the GPU; what was recorded before is gone then.
  virtual std::vector<at::Tensor> record(const Work& work) = 0;
  // Queues the recorded operations on the current stream.
  virtual void replay() = 0;
  // Gives the memory of what is recorded back, once its results are gone too.
  virtual void forget() = 0;
  // Whether the device has free, beside what is recorded, as much memory as that takes. To find out, it may give cached
  // memory back.
  virtual bool has_room_beside() = 0;
};
inline DeviceGraph::~DeviceGraph() = default;

using MakeDeviceGraph = std::function<std::unique_ptr<DeviceGraph>()>;

}  // namespace lockstep::comm

// An entry point of the plug-in; the caller owns the graph.
extern "C" lockstep::comm::DeviceGraph* lockstep_make_device_graph();
