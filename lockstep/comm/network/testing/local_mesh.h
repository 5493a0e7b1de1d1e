// A mesh without a network, for tests: the ranks are threads of one process.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "lockstep/comm/network/mesh.h"
#include "lockstep/comm/network/network_communicator.h"

namespace lockstep::comm::testing {

// The messages of all ranks between send and receive.
struct Exchanged {
  std::mutex mutex;
  std::condition_variable news;
  std::map<std::tuple<int, int, uint32_t, size_t>, std::deque<std::vector<std::byte>>>
      messages;                               // by sender, receiver, tag and bytes
  std::vector<size_t> sent;                   // bytes of each message that rank 0 sent, in order
  std::function<bool(int from, int to)> cut;  // optional: whether messages between these ranks get lost
  std::vector<bool> aborted;                  // by rank
};

class LocalMesh final : public Mesh {
 public:
  LocalMesh(std::shared_ptr<Exchanged> exchanged, int rank, int size);

  const char* name() const override { return "local"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string describe() const override { return "local"; }
  void exchange(std::span<const Message> sends, std::span<const Message> receives, const Patience& patience) override;
  void check() noexcept override {}
  void abort() noexcept override;

 private:
  std::shared_ptr<Exchanged> exchanged_;
  int rank_, size_;
};

// A world whose ranks are threads over a LocalMesh.
struct LocalWorld {
  int size = 2;
  std::chrono::milliseconds timeout{20'000};
  std::chrono::milliseconds period{20};  // the watch's period
  std::shared_ptr<Exchanged> exchanged = std::make_shared<Exchanged>();

  // Runs `program` on every rank at once, with a communicator of all ranks. Throws the exception of the lowest rank
  // that threw one.
  void run(const std::function<void(NetworkCommunicator&)>& program);
  // The same with the network of which communicators are made.
  void run_networks(const std::function<void(const Network&, int rank)>& program);
};

}  // namespace lockstep::comm::testing
