#include "lockstep/comm/plugins/nccl/nccl_queue.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <cstring>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::comm {
namespace {

constexpr std::chrono::milliseconds kPeriod{10};
constexpr std::chrono::seconds kPatience{10};  // until an abort has ended a call that is being queued

// The error of the first of NCCL's parts that failed; null if none has.
std::exception_ptr error_of(const NcclFlight& flight) {
  for (const auto& part : flight.parts) {
    part->isCompleted();  // which asks NCCL's communicator
    if (auto error = part->exception()) return error;
  }
  return nullptr;
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    const std::string text = thrown.what();
    return first_line(text);
  } catch (...) {
    return "unknown";
  }
}

// The DesyncError if the ranks passed different signatures; null if they are equal.
std::exception_ptr difference_of(const NcclFlight& flight) {
  std::vector<std::optional<Signature>> by_rank;
  bool differ = false;
  for (int64_t k = 0; k < flight.signatures.size(0); ++k) {
    Signature signature{};
    std::memcpy(&signature, flight.signatures[k].const_data_ptr(), sizeof signature);
    differ = differ || signature != flight.call.signature;
    const auto rank = static_cast<size_t>(flight.call.group.ranks[static_cast<size_t>(k)]);
    if (by_rank.size() <= rank) by_rank.resize(rank + 1);
    by_rank[rank] = signature;
  }
  if (!differ) return nullptr;
  return std::make_exception_ptr(DesyncError(difference_text(by_rank, flight.call.number - 1)));
}

}  // namespace

NcclQueue::NcclQueue(at::Device device, std::shared_ptr<Watch> watch, std::shared_ptr<std::atomic<bool>> stopped,
                     Ends ends)
    : device_(device), watch_(std::move(watch)), stopped_(std::move(stopped)), ends_(std::move(ends)), thread_([this] {
        run();
      }) {}

NcclQueue::~NcclQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  news_.notify_all();
  thread_.join();
}

void NcclQueue::push(std::shared_ptr<NcclFlight> flight) {
  flight->wait = watch_->enter(flight->call);
  if (*stopped_) {
    fail(watch_->explain(flight->wait, {MeshError::Cause::kAborted, {}, "aborted"}));
    watch_->leave(flight->wait);
    check();
  }
  {
    const std::lock_guard lock(mutex_);
    flights_.push_back(std::move(flight));
  }
  news_.notify_all();
}

void NcclQueue::check() const {
  if (const auto why = failure()) std::rethrow_exception(why);
}

std::exception_ptr NcclQueue::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void NcclQueue::run() {
  const c10::cuda::CUDAGuard on_device(static_cast<c10::DeviceIndex>(device_.index()));
  std::unique_lock lock(mutex_);
  while (true) {
    if (flights_.empty()) {
      if (ending_) return;
      news_.wait(lock);
      continue;
    }
    const auto first = flights_.front();  // calls end in the order of their stream
    lock.unlock();
    bool ended = true;
    try {
      ended = poll(*first);
    } catch (const std::exception& error) {  // CUDA itself
      fail(std::make_exception_ptr(CommError(first->call.label, ": ", text_of(std::current_exception()))));
      await_queueing(*first);
    }
    if (ended) {
      watch_->leave(first->wait);
      first->parts.clear();  // with the tensors that c10d keeps in them
    }
    lock.lock();
    if (ended) {
      flights_.pop_front();
    } else {
      news_.wait_for(lock, kPeriod);
    }
  }
}

// Polls a call: breaks the group if the call failed. Returns whether the call has ended, with success or not.
bool NcclQueue::poll(NcclFlight& flight) {
  using Cause = MeshError::Cause;
  using Stage = NcclFlight::Stage;
  const Stage stage = flight.stage;
  if (stage == Stage::kGivenUp) return true;
  if (failure()) {
    await_queueing(flight);
    return true;
  }
  if (stage == Stage::kQueued && flight.end.query()) {
    if (!flight.signatures.defined()) return true;
    if (auto difference = difference_of(flight)) fail(difference);
    return true;
  }
  std::optional<MeshError> error;
  if (*stopped_) {
    error.emplace(Cause::kAborted, std::vector<int>{}, "aborted");
  } else if (flight.deadline.passed()) {
    error.emplace(Cause::kTimeout, std::vector<int>{}, "NCCL: timed out");
  } else if (const auto why = stage == Stage::kQueued ? error_of(flight) : nullptr) {
    error.emplace(Cause::kBroken, std::vector<int>{}, text_of(why));
  }
  if (error) {
    fail(watch_->explain(flight.wait, *error));
    await_queueing(flight);
  } else {
    watch_->warn_if_late(flight.wait);
  }
  return error.has_value();
}

void NcclQueue::fail(std::exception_ptr why) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = std::move(why);
  }
  ends_.abort();
}

// NCCL has no way to end a call that waits for a peer while it connects.
void NcclQueue::await_queueing(const NcclFlight& flight) {
  for (const Deadline deadline(kPatience); flight.stage == NcclFlight::Stage::kQueueing;) {
    if (deadline.passed()) return ends_.process(failure());
    std::this_thread::sleep_for(kPeriod);
  }
}

bool NcclWork::done() {
  queue_->check();
  return flight_->end.query();
}

bool NcclWork::wait_for(std::chrono::nanoseconds time) {
  for (const Deadline deadline(time); !done(); std::this_thread::yield()) {
    if (deadline.passed()) return false;
  }
  return true;
}

void NcclWork::wait() {
  queue_->check();
  const auto stream = at::cuda::getCurrentCUDAStream(flight_->end.device_index());
  asked_.record(stream);
  flight_->end.block(stream);
}

std::chrono::nanoseconds NcclWork::elapsed() const { return until_end(flight_->ready); }

std::optional<std::chrono::nanoseconds> NcclWork::stream_waited() const {
  return asked_.isCreated() ? until_end(asked_) : std::chrono::nanoseconds(0);
}

// From an event until the call's end; 0 if the call has not ended, or had before.
std::chrono::nanoseconds NcclWork::until_end(const at::cuda::CUDAEvent& from) const {
  if (!from.query() || !flight_->end.query()) return std::chrono::nanoseconds(0);
  const double milliseconds = from.elapsed_time(flight_->end);
  return std::chrono::nanoseconds(static_cast<int64_t>(std::max(milliseconds, 0.0) * 1e6));
}

}  // namespace lockstep::comm
