// This node's part in a run whose nodes come and go: a lease that says it is there, and a look at the others, by a
// thread of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/launch/etcd/epoch.h"
#include "lockstep/launch/etcd/etcd_client.h"

namespace lockstep::launch {

// What etcd holds of the run is another version's: no waiting changes that.
class OtherVersionError : public CommError {
 public:
  using CommError::CommError;
};

// Its methods are for one thread, but ranks_must_end() and lease_until_ns() for any.
class Membership {
 public:
  // What a membership leaves to the next one of its node.
  struct Earlier {
    int before = 0;   // the last epoch of a run that had ended before the node came; 0: none
    std::string run;  // Epoch::run
  };

  struct Options {
    EtcdOptions etcd;
    std::string run;  // keys are under /lockstep/<run>/
    Node self;        // its id, host, address and nproc
    EpochLimits limits;
    // Of a node that comes back under another id. Nothing: it has seen no epoch of its run before.
    std::optional<Earlier> earlier = {};
    double timeout = 600;                               // seconds that an epoch is waited for
    double patience = 600;                              // seconds that an etcd which no longer answers is waited for
    std::function<std::vector<int>()> draw_ports = {};  // as many as Node::ports wants
    std::function<void(const std::string&)> say = [](const auto&) {};  // a line for people; on any thread
    std::function<bool()> stop_asked = [] { return false; };           // asked while an epoch is waited for, or etcd
  };

  // Takes a lease. Throws as EtcdClient; a process may try again, and may join again once a lease is lost. Throws
  // ConfigError where the run that it was in is over, and another one has its id.
  explicit Membership(Options options);
  // Gives the lease back: the others see at once that the node has gone.
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Waits for an epoch after number `last` that this node takes part in, or for the run's end. Throws CommError if
  // none comes in time, or the lease is lost, and ConfigError if another run has its id now; nothing is returned if a
  // stop was asked for.
  std::optional<Epoch> wait_after(int last);

  // Whether this epoch's ranks must end now.
  struct RanksEnd {
    std::string why = "";     // for people; "": they may go on
    bool at_once = false;     // the lease is lost, and nothing may be written any more
    bool for_a_peer = false;  // as broken_for_a_peer()
  };
  RanksEnd ranks_must_end(int epoch) const;

  // Whether the lease is lost: this node has left the run.
  bool lost() const { return lost_; }
  // Nothing where it has seen no epoch of its run while it had the lease.
  std::optional<Earlier> earlier() const;

  // Until when nobody else acts in this node's place, unless the lease is renewed: boot_ns().
  int64_t lease_until_ns() const { return lost_ ? 1 : lease_until_ns_.load(); }

  // Tells how this node's ranks of an epoch have ended. Throws CommError if etcd does not hear it while the lease
  // lives, or soon after a stop was asked for.
  void tell(int epoch, NodeOutcome outcome);

 private:
  void join();
  void check_same_run(const Epoch& epoch) const;
  void give_back() noexcept;
  void follow();
  void register_self(EtcdClient& client);
  void renew(EtcdClient& client);
  std::vector<EtcdValue> list(EtcdClient& client, const std::string& rest);
  EpochView look(EtcdClient& client);
  void act(EtcdClient& client, const EpochView& view);
  void tell_of_waiting(const EpochView& view);
  std::string key(const std::string& rest) const { return "/lockstep/" + options_.run + '/' + rest; }

  const Options options_;
  EtcdClient client_;     // of the caller's thread
  EtcdClient followers_;  // of the thread
  int64_t lease_ = 0;
  std::atomic<int64_t> lease_until_ns_ = 0;  // until when nobody else acts in this node's place: boot_ns()
  std::atomic<bool> lost_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  EpochView view_;     // the last one that was seen with the lease
  int before_ = 0;     // the last epoch of a run that had ended before this node came
  std::string run_;    // Epoch::run of the run that it is in; "": it has seen no epoch of it
  std::string error_;  // why the last look failed; "": it did not
  bool done_ = false;

  // Of the thread alone.
  int64_t renewed_ns_ = 0, quiet_since_ns_ = 0, told_ns_ = 0;
  std::vector<std::string> seen_;
  std::string told_;
  std::thread thread_;
};

}  // namespace lockstep::launch
