#include "elastic_launch.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>

#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/base/host_name.h"
#include "lockstep/launch/environment.h"
#include "lockstep/launch/etcd/membership.h"
#include "lockstep/launch/etcd/own_etcd.h"
#include "lockstep/launch/launcher.h"
#include "lockstep/launch/process.h"
#include "lockstep/launch/signals.h"
#include "lockstep/launch/unique_id.h"
#include "lockstep/parallel/options/lanes.h"
#include "lockstep/rendezvous/place/tcp_sockets.h"

namespace lockstep::front {
namespace {

// A reader that stands still must not hold up the thread that renews the lease: it misses the line.
void say(const std::string& line) {
  pollfd state{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (poll(&state, 1, 0) == 1) write_all(STDERR_FILENO, line + '\n');
}

// Of no other launcher, and of no earlier membership of this one.
std::string new_id() { return cat(host_name(), '-', getpid(), '-', launch::unique_id()); }

launch::Membership::Options options_of(const apps::LaunchPlan& plan) {
  const std::string address = plan.elastic->address.empty() ? host_name() : plan.elastic->address;
  launch::Membership::Options options{
      .etcd = plan.elastic->etcd,
      .run = plan.layout.run_id,
      .self = {.id = new_id(), .host = host_name(), .address = address, .nproc = plan.nproc, .ports = {}},
      .limits = plan.elastic->limits,
      .timeout = plan.elastic->timeout,
      .patience = plan.elastic->timeout};
  constexpr double kOfOwn = 30;  // an etcd that has ended with its node does not come back
  if (plan.elastic->own_etcd) options.patience = std::min(options.patience, kOfOwn);
  options.draw_ports = [nproc = plan.nproc] { return free_ports(nproc + 1); };
  options.say = say;
  return options;
}

// This node's ranks among all of the epoch's.
launch::RankLayout layout_of(const launch::RankLayout& base, const launch::Epoch& epoch, const std::string& self,
                             int max_restarts) {
  launch::RankLayout layout = base;
  layout.node = 0;
  layout.nodes = static_cast<int>(epoch.nodes.size());
  layout.first_rank = layout.world_size = 0;
  layout.endpoints.clear();
  layout.job = cat("run ", base.run_id, " that ", epoch.run, " has begun");
  layout.restarts = epoch.restarts;
  layout.max_restarts = max_restarts;
  layout.master_addr = epoch.nodes.front().address;
  layout.master_port = epoch.nodes.front().ports.front();
  bool before = true;
  for (const launch::Node& node : epoch.nodes) {
    before = before && node.id != self;
    if (before) layout.first_rank += node.nproc, ++layout.node;
    layout.world_size += node.nproc;
    for (int rank = 0; rank < node.nproc; ++rank) {
      layout.endpoints.push_back(cat(node.address, ':', node.ports.at(static_cast<size_t>(rank) + 1)));
    }
  }
  return layout;
}

// How this node's ranks have ended, for the other nodes.
launch::NodeOutcome outcome_of(const launch::Launcher& launcher, int code, bool ended_from_outside) {
  const bool asked = launcher.was_asked_to_stop() || (code == kExitStoppedOnRequest && !ended_from_outside);
  // A rank that has failed by itself before is the cause all the same.
  const bool stopped =
      ended_from_outside && !asked && (code == 0 || code == CommError::kExitCode || code == kExitStoppedOnRequest);
  const auto status = code > 128 ? launch::ExitStatus{.signal = code - 128} : launch::ExitStatus{.code = code};
  return {.node = "",
          .exit_code = stopped ? CommError::kExitCode : code,
          .stopped = stopped,
          .asked = asked,
          .repeats = launcher.would_fail_again(),
          .text = stopped ? "the others could not go on" : status.text(),
          .step = launcher.progress()};
}

// An error of the launcher's own is told, too: no rank has been started.
launch::NodeOutcome run_ranks(launch::Membership& membership, int epoch, const launch::RunSpec& spec,
                              const bool& ended_from_outside) {
  try {
    launch::Launcher launcher(spec);
    const int code = launcher.run();
    return outcome_of(launcher, code, ended_from_outside);
  } catch (const Error& error) {
    try {
      membership.tell(epoch, {.exit_code = error.exit_code(), .repeats = true, .text = error.what()});
    } catch (const Error& untold) {
      say(cat("warning: ", untold.what()));
    }
    throw;
  }
}

// The etcd that this node runs for the others, where the endpoint is its address.
class HostedEtcd {
 public:
  HostedEtcd(const apps::ElasticPlan& plan, const std::function<bool()>& stop_asked)
      : at_(plan.own_etcd), is_host_(plan.is_host), stop_asked_(stop_asked) {}

  // Starts it where nobody else runs one there. While nodes are waited for: the port may become free, and the host's
  // name known.
  void start() {
    if (!at_ || own_ || !is_host_.value_or(rendezvous::is_this_machine(at_->host))) return;
    own_ = launch::OwnEtcd::start(at_->host, at_->port, stop_asked_);
    if (own_ || told_ || stop_asked_()) return;
    told_ = true;
    say(cat("somebody listens at ", at_->host, ':', at_->port, " already; this node meets the others there"));
  }
  // Until the others have left, too, or another signal comes than those that ended this node's part: what ends a
  // terminal, or a service, sends several. `last` is the number of the run's last epoch.
  void serve(int last, int& stop_signal) {
    constexpr double kSameSeconds = 1;
    const Stopwatch since;
    const auto stop_asked = [&] {
      if (!stop_asked_()) return false;
      if (since.seconds() > kSameSeconds) return true;
      stop_signal = 0;
      return false;
    };
    stop_signal = 0;
    if (own_) own_->serve_until_left(last, stop_asked, say);
  }

 private:
  std::optional<apps::HostPort> at_;
  std::optional<bool> is_host_;
  std::function<bool()> stop_asked_;
  std::unique_ptr<launch::OwnEtcd> own_;
  bool told_ = false;
};

// An etcd that does not answer yet is tried again for so many seconds, and named every three seconds. Nothing if a stop
// is asked for meanwhile.
std::unique_ptr<launch::Membership> join(const launch::Membership::Options& options, double patience,
                                         HostedEtcd& etcd) {
  constexpr double kTellEvery = 3;  // seconds
  constexpr int kNapMs = 500;
  const Stopwatch waited;
  std::optional<Stopwatch> told;
  while (true) {
    etcd.start();
    try {
      return std::make_unique<launch::Membership>(options);
    } catch (const launch::OtherVersionError&) {
      throw;
    } catch (const CommError& error) {
      if (options.stop_asked()) return nullptr;
      if (waited.seconds() > patience) throw;
      if (!told || told->seconds() > kTellEvery) {
        say(cat("waiting: ", error.what()));
        told.emplace();
      }
    }
    poll(nullptr, 0, kNapMs);
  }
}

// Takes part in one epoch after the other, until the run ends, or a stop is asked for. `seen` becomes the number of the
// last one.
int take_part_in_run(const apps::LaunchPlan& plan, const launch::RunSpec& spec, launch::Membership::Options& options,
                     HostedEtcd& etcd, const int& stop_signal, int& seen) {
  auto membership = join(options, options.timeout, etcd);
  if (membership == nullptr) return 128 + stop_signal;
  std::optional<int> stop_code;  // of ranks that were asked to stop, and have
  // Returns the exit code of the run, or of a stop; nothing after an epoch.
  const auto take_part = [&](int& last) -> std::optional<int> {
    const auto epoch = membership->wait_after(last);
    if (!epoch) {
      if (last > 0)
        membership->tell(last, {.exit_code = 128 + stop_signal, .asked = true, .text = "was asked to stop"});
      return 128 + stop_signal;
    }
    seen = epoch->number;
    if (epoch->ended) {
      if (epoch->exit_code != 0) say(cat("run ", options.run, " has ended: ", epoch->why));
      return epoch->exit_code;
    }
    last = epoch->number;
    launch::RunSpec own = spec;
    own.max_restarts = 0;  // all nodes together start anew
    own.nproc = epoch->find(options.self.id)->nproc;
    own.layout = layout_of(plan.layout, *epoch, options.self.id, options.limits.max_restarts);
    if (own.nproc != plan.nproc) {
      own.layout->cpus = plan.cpus_of(own.nproc);
      if (own.keep_threads) own.threads = parallel::default_threads(usable_cores(), own.nproc);
    }
    say(cat("epoch ", epoch->number, ": ", epoch->why, "; ranks ", own.layout->first_rank, " to ",
            own.layout->first_rank + own.nproc - 1, " of ", own.layout->world_size, " are this node's"));
    bool ended_from_outside = false;
    own.must_end = [&] {
      const launch::Membership::RanksEnd end = membership->ranks_must_end(last);
      ended_from_outside = ended_from_outside || !end.why.empty();
      return launch::MustEnd{end.why, end.at_once, end.for_a_peer, membership->lease_until_ns()};
    };
    const launch::NodeOutcome outcome = run_ranks(*membership, last, own, ended_from_outside);
    if (outcome.asked) stop_code = outcome.exit_code;
    membership->tell(last, outcome);
    return std::nullopt;
  };
  for (int last = 0;;) {
    try {
      if (const auto code = take_part(last)) return *code;
    } catch (const CommError& error) {
      if (stop_code) {
        say(cat("warning: ", error.what()));
        return *stop_code;
      }
      if (!membership->lost()) throw;
      say(cat("warning: ", error.what(), "; coming back to the run"));
      if (const auto earlier = membership->earlier()) options.earlier = earlier;
      membership.reset();
      options.self.id = new_id();  // it comes back as another node
      membership = join(options, options.patience, etcd);
      if (membership == nullptr) return 128 + stop_signal;
      last = 0;  // its epochs are those of another node now
    }
  }
}

}  // namespace

int launch_elastic(const apps::LaunchPlan& plan, const launch::RunSpec& spec) {
  launch::Membership::Options options = options_of(plan);
  // Made before the lease: whoever is stopped gives it back. The launcher has a watch of its own meanwhile.
  launch::SignalWatch signals;
  int stop_signal = 0;
  options.stop_asked = [&] {
    while (const auto signal = signals.next()) {
      if (*signal == SIGTSTP) signals.stop_here();
      if (*signal == SIGINT || *signal == SIGTERM || *signal == SIGHUP) stop_signal = *signal;
    }
    return stop_signal != 0;
  };
  HostedEtcd etcd(*plan.elastic, options.stop_asked);
  int seen = 0;
  // Others are not waited for where a run that has not begun was stopped here.
  const auto serve_others = [&] {
    if (stop_signal == 0 || seen > 0) etcd.serve(seen, stop_signal);
  };
  try {
    const int code = take_part_in_run(plan, spec, options, etcd, stop_signal, seen);
    serve_others();
    return code;
  } catch (const Error&) {
    serve_others();
    throw;
  }
}

}  // namespace lockstep::front
