#include "lockstep/comm/plugins/nccl/nccl_queue.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include <cstring>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::comm {
namespace {

constexpr std::chrono::milliseconds kPeriod{10};

// The error of the first of NCCL's parts that failed; null if none has.
std::exception_ptr error_of(const NcclFlight& flight) {
  for (const auto& part : flight.parts) {
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
                     std::function<void()> abort)
    : device_(device),
      watch_(std::move(watch)),
      stopped_(std::move(stopped)),
      abort_(std::move(abort)),
      thread_([this] { run(); }) {}

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
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

bool NcclQueue::broken() const {
  const std::lock_guard lock(mutex_);
  return failure_ != nullptr;
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
    }
    if (ended) watch_->leave(first->wait);
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
  if (broken()) return true;
  if (flight.end.query()) {
    flight.ended_ns = monotonic_ns();
    if (!flight.signatures.defined()) return true;
    if (auto difference = difference_of(flight)) fail(difference);
    return true;
  }
  std::optional<MeshError> error;
  if (*stopped_) {
    error.emplace(Cause::kAborted, std::vector<int>{}, "aborted");
  } else if (flight.deadline.passed()) {
    error.emplace(Cause::kTimeout, std::vector<int>{}, "NCCL: timed out");
  } else if (const auto why = error_of(flight)) {
    error.emplace(Cause::kBroken, std::vector<int>{}, text_of(why));
  }
  if (error) {
    fail(watch_->explain(flight.wait, *error));
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
  abort_();
}

bool NcclWork::done() {
  queue_->check();
  const bool ended = flight_->end.query();
  if (ended && flight_->ended_ns == 0) flight_->ended_ns = monotonic_ns();
  return ended;
}

bool NcclWork::wait_for(std::chrono::nanoseconds time) {
  for (const Deadline deadline(time); !done(); std::this_thread::yield()) {
    if (deadline.passed()) return false;
  }
  return true;
}

void NcclWork::wait() {
  queue_->check();
  flight_->end.block(at::cuda::getCurrentCUDAStream(flight_->end.device_index()));
}

std::chrono::nanoseconds NcclWork::elapsed() const {
  const int64_t ended = flight_->ended_ns;
  return std::chrono::nanoseconds((ended != 0 ? ended : monotonic_ns()) - flight_->began_ns);
}

}  // namespace lockstep::comm
