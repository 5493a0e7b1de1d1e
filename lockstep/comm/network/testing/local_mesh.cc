#include "lockstep/comm/network/testing/local_mesh.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

namespace lockstep::comm::testing {

LocalMesh::LocalMesh(std::shared_ptr<Exchanged> exchanged, int rank, int size)
    : exchanged_(std::move(exchanged)), rank_(rank), size_(size) {
  const std::lock_guard lock(exchanged_->mutex);
  exchanged_->aborted.resize(static_cast<size_t>(size));
}

void LocalMesh::exchange(std::span<const Message> sends, std::span<const Message> receives, const Patience& patience) {
  std::unique_lock lock(exchanged_->mutex);
  for (const Message& message : sends) {
    if (rank_ == 0) exchanged_->sent.push_back(message.bytes);
    if (exchanged_->cut && exchanged_->cut(rank_, message.peer)) continue;
    exchanged_->messages[{rank_, message.peer, message.tag, message.bytes}].emplace_back(message.data,
                                                                                         message.data + message.bytes);
  }
  exchanged_->news.notify_all();
  for (const Message& message : receives) {
    auto& queue = exchanged_->messages[{message.peer, rank_, message.tag, message.bytes}];
    const auto stopped = [&] { return exchanged_->aborted[static_cast<size_t>(rank_)]; };
    const auto come = [&] { return stopped() || !queue.empty(); };
    while (!come()) {
      lock.unlock();
      const auto left = patience.left();
      lock.lock();
      if (!exchanged_->news.wait_for(lock, left, come) && left.count() <= 0) {
        throw MeshError(MeshError::Cause::kTimeout, {message.peer}, "timed out");
      }
    }
    if (stopped()) throw MeshError(MeshError::Cause::kAborted, {}, "aborted");
    std::copy(queue.front().begin(), queue.front().end(), message.data);
    queue.pop_front();
  }
}

void LocalMesh::abort() noexcept {
  const std::lock_guard lock(exchanged_->mutex);
  exchanged_->aborted[static_cast<size_t>(rank_)] = true;
  exchanged_->news.notify_all();
}

void LocalWorld::run_networks(const std::function<void(const Network&, int rank)>& program) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  WatchGroup world{"world", std::vector<int>(static_cast<size_t>(size))};
  std::iota(world.ranks.begin(), world.ranks.end(), 0);
  RankTable table;
  for (int rank = 0; rank < size; ++rank) {
    table.push_back({rank, 0, cat("host", rank)});
    Bulletin bulletin(store, rank);
    bulletin.announce();
    bulletin.announce(world);
  }
  std::vector<std::exception_ptr> failures(static_cast<size_t>(size));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        const std::shared_ptr<Mesh> mesh = std::make_shared<LocalMesh>(exchanged, rank, size);
        Watch::Options options{.rank = rank, .ranks = table, .stop_waits = [mesh] { mesh->abort(); }, .period = period};
        program({mesh, std::make_shared<Watch>(std::move(options), std::make_unique<Bulletin>(store, rank)), timeout},
                rank);
      } catch (...) {
        failures[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (auto& rank : ranks) rank.join();
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

void LocalWorld::run(const std::function<void(NetworkCommunicator&)>& program) {
  run_networks([&](const Network& network, int) {
    std::vector<int> all(static_cast<size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    NetworkCommunicator communicator(network, all, "world");
    program(communicator);
  });
}

}  // namespace lockstep::comm::testing
