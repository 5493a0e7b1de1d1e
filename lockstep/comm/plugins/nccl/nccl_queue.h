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
#include <thread>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/network/watch.h"
#include "lockstep/comm/plugins/nccl/nccl_collectives.h"

namespace lockstep::comm {

// A call that is queued on the device.
struct NcclFlight {
  explicit NcclFlight(WatchedCall watched) : call(std::move(watched)), deadline(call.timeout) {}

  WatchedCall call;
  Deadline deadline;
  NcclWorks parts = {};
  at::cuda::CUDAEvent end = {};
  at::Tensor signatures = {};  // the ranks' signatures, [ranks, sizeof(Signature)] bytes on the host, valid at `end`;
                               // undefined if this call's are not compared
  uint64_t wait = 0;           // the watch's number of the wait
  int64_t began_ns = monotonic_ns();
  std::atomic<int64_t> ended_ns{0};
};

class NcclQueue {
 public:
  // `abort` ends NCCL's kernels. The watch sets `stopped` when all waits must end.
  NcclQueue(at::Device device, std::shared_ptr<Watch> watch, std::shared_ptr<std::atomic<bool>> stopped,
            std::function<void()> abort);
  // Waits until the calls under way have ended, at their timeouts at the latest.
  ~NcclQueue();
  NcclQueue(const NcclQueue&) = delete;
  NcclQueue& operator=(const NcclQueue&) = delete;

  // Adds a call that has been queued on the device. Throws if all waits must end.
  void push(std::shared_ptr<NcclFlight> flight);
  // Throws the error that broke the group, if one did. Any thread.
  void check() const;
  bool broken() const;

 private:
  void run();
  bool poll(NcclFlight& flight);
  void fail(std::exception_ptr why);

  at::Device device_;
  std::shared_ptr<Watch> watch_;
  std::shared_ptr<std::atomic<bool>> stopped_;
  std::function<void()> abort_;
  mutable std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::shared_ptr<NcclFlight>> flights_;
  std::exception_ptr failure_;
  bool ending_ = false;
  std::thread thread_;
};

// A call under way on NCCL. wait() makes the current stream wait, not the host; done() and wait_for() query the device.
class NcclWork final : public Work {
 public:
  NcclWork(std::shared_ptr<NcclQueue> queue, std::shared_ptr<NcclFlight> flight)
      : queue_(std::move(queue)), flight_(std::move(flight)) {}

  bool done() override;
  bool wait_for(std::chrono::nanoseconds time) override;
  void wait() override;
  std::chrono::nanoseconds elapsed() const override;

 private:
  std::shared_ptr<NcclQueue> queue_;
  std::shared_ptr<NcclFlight> flight_;
};

}  // namespace lockstep::comm
