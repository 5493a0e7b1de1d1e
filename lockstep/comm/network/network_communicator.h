// The network backend: collectives made of a mesh's messages, with additions in the tree's order, and a watch over
// every wait.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "lockstep/base/text.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/network/exchange.h"
#include "lockstep/comm/network/group_numbers.h"
#include "lockstep/comm/network/network_work.h"
#include "lockstep/comm/network/tree_join.h"
#include "lockstep/comm/network/watch.h"

namespace lockstep::comm {

// The parts of the network that all groups of a world share. A mesh's ranks are the world's ranks.
struct Network {
  std::shared_ptr<Mesh> mesh;
  std::shared_ptr<Watch> watch;
  std::chrono::milliseconds timeout{600'000};
  std::shared_ptr<GroupNumbers> numbers = std::make_shared<GroupNumbers>();
};

class NetworkCommunicator final : public Communicator {
 public:
  // The group of `members`, ranks of the world that include this one. `name` is the same on all of them and no other
  // group's, and so is `number` (group_numbers.h). All members have announced the group to their watch
  // (Watch::announce).
  NetworkCommunicator(Network network, std::vector<int> members, std::string name, int number = 0);
  ~NetworkCommunicator() override;

  int rank() const override { return members_.self; }
  int size() const override { return members_.size(); }
  const char* backend() const override { return network_.mesh->name(); }
  std::string describe() const override { return cat(network_.mesh->describe(), ", ", size(), " ranks"); }
  bool shares(const at::Tensor&) const override { return false; }
  void progress() override {}
  void abort(const std::string& reason) noexcept override;

  // Sets what a thread that waits for one of this communicator's calls does now and then; not for those of its groups.
  void set_progress(std::function<void()> progress) { progress_ = std::move(progress); }

  // Begins a tree_join() of this group, as one of its numbered calls, with the sum in place of a mean. `call` gives the
  // operator, the wire type, the timeout and the name in error messages.
  std::shared_ptr<Work> join(const Call& call, const JoinPlan& plan, std::vector<at::Tensor> partials);

 protected:
  std::shared_ptr<Work> begin(Call call) override;
  std::unique_ptr<Communicator> group(const std::vector<int>& members) override;

 private:
  using Act = std::function<void(Exchange&)>;

  std::chrono::milliseconds timeout_of(const Call& call) const;
  std::shared_ptr<Work> start_collective(const Call& call, const Signature& signature, Act act);
  std::shared_ptr<Work> start_message(Call call);
  // A thread's task: `run` carries the call out under the watch, and then finishes `work`.
  struct Task {
    std::shared_ptr<NetworkWork> work;
    std::function<void()> run;
  };
  // `user_tag` is that of a message.
  Task make_task(WatchedCall call, uint64_t salt, std::optional<int> user_tag, Act act);

  Network network_;
  Members members_;
  WatchGroup watched_;
  uint64_t salt_;
  std::function<void()> progress_;
  uint64_t calls_ = 0, groups_ = 0;
  // The messages begun of one kind, peer and tag. The last of them are kept, for a message begins when the one
  // Exchange::kMostMessages before it has ended.
  struct Channel {
    uint64_t begun = 0;
    std::deque<std::shared_ptr<NetworkWork>> last;
  };
  std::map<std::tuple<OpKind, int, int>, Channel> channels_;
  SerialThread collectives_;
  // Each message has a thread of its own: a send may wait for a receive that its peer begins after another.
  struct Messenger {
    std::shared_ptr<NetworkWork> work;
    std::thread thread;
  };
  std::vector<Messenger> messengers_;
};

}  // namespace lockstep::comm
