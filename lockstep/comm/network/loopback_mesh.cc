#include "lockstep/comm/network/loopback_mesh.h"

#include <algorithm>

namespace lockstep::comm {

void LoopbackMesh::exchange(std::span<const Message> sends, std::span<const Message> receives,
                            const Patience& patience) {
  const auto is_own = [this](const Message& message) { return message.peer == rank(); };
  if (std::none_of(sends.begin(), sends.end(), is_own) && std::none_of(receives.begin(), receives.end(), is_own)) {
    return below_->exchange(sends, receives, patience);
  }
  std::vector<Message> out, in;
  std::copy_if(sends.begin(), sends.end(), std::back_inserter(out), std::not_fn(is_own));
  std::copy_if(receives.begin(), receives.end(), std::back_inserter(in), std::not_fn(is_own));
  {
    const std::lock_guard lock(mutex_);
    for (const Message& message : sends) {
      if (is_own(message)) own_[{message.tag, message.bytes}].emplace_back(message.data, message.data + message.bytes);
    }
    news_.notify_all();
  }
  if (!out.empty() || !in.empty()) below_->exchange(out, in, patience);
  for (const Message& message : receives) {
    if (is_own(message)) take(message, patience);
  }
}

void LoopbackMesh::take(const Message& message, const Patience& patience) {
  const Key key{message.tag, message.bytes};
  std::unique_lock lock(mutex_);
  const auto come = [&] { return aborted_ || own_.contains(key); };
  while (!come()) {
    lock.unlock();
    const auto left = patience.left();
    lock.lock();
    if (!news_.wait_for(lock, left, come) && left.count() <= 0) {
      throw MeshError(MeshError::Cause::kTimeout, {rank()}, "timed out");
    }
  }
  if (aborted_) throw MeshError(MeshError::Cause::kAborted, {}, "the exchange was aborted");
  auto& queue = own_[key];
  std::copy(queue.front().begin(), queue.front().end(), message.data);
  queue.pop_front();
  if (queue.empty()) own_.erase(key);
}

void LoopbackMesh::abort() noexcept {
  below_->abort();
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  news_.notify_all();
}

}  // namespace lockstep::comm
