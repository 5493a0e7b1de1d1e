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

// Where the messages of all ranks lie between send and receive.
struct Exchanged {
  std::mutex mutex;
  std::condition_variable news;
  std::map<std::tuple<int, int, uint32_t, size_t>, std::deque<std::vector<std::byte>>>
      messages;                               // from, to, tag, bytes
  std::vector<size_t> sent;                   // bytes of each message that rank 0 sent, in order
  std::function<bool(int from, int to)> cut;  // optional: messages that get lost
  std::vector<bool> aborted;                  // by rank
};

class LocalMesh final : public Mesh {
 public:
  LocalMesh(std::shared_ptr<Exchanged> exchanged, int rank, int size);

  const char* name() const override { return "local"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string describe() const override { return "local"; }
  void exchange(std::span<const Message> sends, std::span<const Message> receives, const Deadline& deadline) override;
  void abort() noexcept override;

 private:
  std::shared_ptr<Exchanged> exchanged_;
  int rank_, size_;
};

// Runs `program` as so many ranks at once, each a thread with a communicator of all, over a LocalMesh. What a rank
// throws is thrown in the end; of several the first rank's.
struct LocalWorld {
  int size = 2;
  std::chrono::milliseconds timeout{20'000};
  std::chrono::milliseconds period{20};  // of the watch
  std::shared_ptr<Exchanged> exchanged = std::make_shared<Exchanged>();

  void run(const std::function<void(NetworkCommunicator&)>& program);
  // The same with what communicators are made of.
  void run_networks(const std::function<void(const Network&, int rank)>& program);
};

}  // namespace lockstep::comm::testing
