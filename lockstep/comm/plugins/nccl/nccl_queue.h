// A group's calls under way on NCCL. The host queues calls and goes on. A thread watches them, and aborts the group
// when a call lasts too long, a peer gives up, or the ranks' calls differ. It replaces NCCL's own watchdog, which would
// end the process.
#pragma once

#include <ATen/cuda/CUDAEvent.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/network/watch.h"
#include "lockstep/comm/plugins/nccl/nccl_collectives.h"

namespace lockstep::comm {

// A call from before it is queued on the device until it has ended there.
struct NcclFlight {
  enum class Stage { kQueueing, kQueued, kGivenUp };

  explicit NcclFlight(WatchedCall watched) : call(std::move(watched)), deadline(call.timeout) {}

  WatchedCall call;
  Deadline deadline;
  std::atomic<Stage> stage{Stage::kQueueing};
  // The following are the queueing thread's until the call is queued.
  NcclWorks parts = {};
  at::cuda::CUDAEvent ready{cudaEventDefault};  // on the calling stream: the tensors are there
  at::cuda::CUDAEvent end{cudaEventDefault};    // on the side stream
  at::Tensor signatures = {};  // the ranks' signatures, [ranks, sizeof(Signature)] bytes on the host, valid at `end`;
                               // undefined if this call's are not compared
  uint64_t wait = 0;           // the watch's number of the wait
};

class NcclQueue {
 public:
  struct Ends {
    std::function<void()> abort;                             // ends NCCL's kernels
    std::function<void(const std::exception_ptr&)> process;  // ends the process: NCCL doesn't come back
  };
  // The watch sets `stopped` when all waits must end.
  NcclQueue(at::Device device, std::shared_ptr<Watch> watch, std::shared_ptr<std::atomic<bool>> stopped, Ends ends);
  // Waits until the calls under way have ended, at their timeouts at the latest.
  ~NcclQueue();
  NcclQueue(const NcclQueue&) = delete;
  NcclQueue& operator=(const NcclQueue&) = delete;

  // Adds a call that is about to be queued on the device: NCCL may wait for peers in it, the first time to connect.
  // Throws if all waits must end.
  void push(std::shared_ptr<NcclFlight> flight);
  // Throws the error that broke the group, if one did. Any thread.
  void check() const;

 private:
  std::exception_ptr failure() const;
  void run();
  bool poll(NcclFlight& flight);
  void fail(std::exception_ptr why);
  void await_queueing(const NcclFlight& flight);

  at::Device device_;
  std::shared_ptr<Watch> watch_;
  std::shared_ptr<std::atomic<bool>> stopped_;
  Ends ends_;
  mutable std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::shared_ptr<NcclFlight>> flights_;
  std::exception_ptr failure_;
  bool ending_ = false;
  std::thread thread_;
};

// A call under way on NCCL. wait() makes the current stream wait, not the host; done() and wait_for() query the device.
// Times are the device's, between events.
class NcclWork final : public Work {
 public:
  NcclWork(std::shared_ptr<NcclQueue> queue, std::shared_ptr<NcclFlight> flight)
      : queue_(std::move(queue)), flight_(std::move(flight)) {}

  bool done() override;
  bool wait_for(std::chrono::nanoseconds time) override;
  void wait() override;
  std::chrono::nanoseconds elapsed() const override;
  std::optional<std::chrono::nanoseconds> stream_waited() const override;

 private:
  std::chrono::nanoseconds until_end(const at::cuda::CUDAEvent& from) const;

  std::shared_ptr<NcclQueue> queue_;
  std::shared_ptr<NcclFlight> flight_;
  at::cuda::CUDAEvent asked_{cudaEventDefault};  // on the stream that waits
};

}  // namespace lockstep::comm
