// A mesh that delivers messages of a rank to itself, which network libraries don't do.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "lockstep/comm/network/mesh.h"

namespace lockstep::comm {

// Wraps another mesh, which carries all other messages. Threads as Mesh.
class LoopbackMesh final : public Mesh {
 public:
  explicit LoopbackMesh(std::unique_ptr<Mesh> below) : below_(std::move(below)) {}

  const char* name() const override { return below_->name(); }
  int rank() const override { return below_->rank(); }
  int size() const override { return below_->size(); }
  std::string describe() const override { return below_->describe(); }
  void exchange(std::span<const Message> sends, std::span<const Message> receives, const Patience& patience) override;
  void open_group(int number, const std::vector<int>& ranks) override { below_->open_group(number, ranks); }
  void check() noexcept override { below_->check(); }
  void abort() noexcept override;

 private:
  using Key = std::pair<uint32_t, size_t>;  // tag and length

  void take(const Message& message, const Patience& patience);

  std::unique_ptr<Mesh> below_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::map<Key, std::deque<std::vector<std::byte>>> own_;  // sent to itself, not yet received
  bool aborted_ = false;
};

}  // namespace lockstep::comm
