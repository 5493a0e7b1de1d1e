#include "lockstep/launch/etcd/membership.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/signals_blocked.h"
#include "lockstep/base/text.h"

namespace lockstep::launch {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook(200);
constexpr int64_t kSecond = 1'000'000'000;
constexpr int kLease = 5;  // seconds
// The lease ends here a little before it does at etcd: what must not be done without it has stopped by then.
constexpr int64_t kMarginNs = kSecond * 7 / 10;
constexpr int64_t kRenewEveryNs = kSecond / 2;
constexpr const char* kLeaseEnded = "the lease of this node has ended, and others act in its place";
constexpr int64_t kTellEveryNs = 3 * kSecond;

// All endpoints can be asked once before a lease is lost that was renewed a moment ago.
Membership::Options patient(Membership::Options options) {
  const auto endpoints = static_cast<int>(std::max<size_t>(1, options.etcd.endpoints.size()));
  options.etcd.http.timeout = std::min(options.etcd.http.timeout, milliseconds(3000 / endpoints));
  return options;
}

double seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

Membership::Membership(Options options)
    : options_(patient(std::move(options))), client_(options_.etcd), followers_(options_.etcd) {
  quiet_since_ns_ = monotonic_ns();
  renewed_ns_ = boot_ns();
  lease_ = client_.grant(kLease);
  lease_until_ns_ = renewed_ns_ + kLease * kSecond - kMarginNs;
  try {
    join();
  } catch (...) {
    give_back();  // others do not wait for a node that is not there
    throw;
  }
  const SignalsBlocked meanwhile;  // they are for the thread that waits for them
  thread_ = std::thread([this] { follow(); });
}

void Membership::join() {
  const EpochView found = look(client_);
  if (options_.earlier && found.epoch) {
    before_ = options_.earlier->before;
    run_ = options_.earlier->run;
    check_same_run(*found.epoch);
    return register_self(client_);
  }
  const auto is_there = [&](const Node& node) { return found.epoch->find(node.id) != nullptr; };
  const bool over = found.epoch && (found.epoch->ended || std::ranges::none_of(found.nodes, is_there));
  if (over) before_ = found.epoch->number;
  register_self(client_);
}

void Membership::check_same_run(const Epoch& epoch) const {
  if (run_.empty() || epoch.run == run_) return;
  throw ConfigError("run ", options_.run,
                    ": this node was away until the run was over, and another one has its id now");
}

std::optional<Membership::Earlier> Membership::earlier() const {
  const std::lock_guard lock(mutex_);
  if (run_.empty()) return std::nullopt;
  return Earlier{before_, run_};
}

Membership::~Membership() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
  give_back();
}

void Membership::give_back() noexcept {
  try {
    client_.revoke(lease_);
  } catch (const std::exception&) {
    // It ends by itself.
  }
}

// The ports are drawn anew each time: those of an epoch that has failed may be taken.
void Membership::register_self(EtcdClient& client) {
  Node self = options_.self;
  self.before = before_;
  self.ports = options_.draw_ports();
  if (!client.put(key("nodes/" + self.id), self.encode(), lease_)) lost_ = true;
}

void Membership::renew(EtcdClient& client) {
  const int64_t now = boot_ns();
  if (now - renewed_ns_ < kRenewEveryNs) return;
  if (!client.keep_alive(lease_)) {
    lost_ = true;
    return;
  }
  renewed_ns_ = now;  // of before it was asked for
  lease_until_ns_ = now + kLease * kSecond - kMarginNs;
}

// The lease is renewed between the lists, each of which may take as long as etcd is waited for.
std::vector<EtcdValue> Membership::list(EtcdClient& client, const std::string& rest) {
  renew(client);
  return client.list(key(rest));
}

// The nodes are read before their outcomes: one that has told and left is not taken for lost.
EpochView Membership::look(EtcdClient& client) {
  EpochView view;
  for (const EtcdValue& each : list(client, "epoch")) {
    view.epoch = Epoch::decode(each.value);
    if (!view.epoch)
      throw OtherVersionError("run ", options_.run, ": etcd holds an epoch that this version can't read");
    view.epoch->revision = each.modified;
  }
  for (const EtcdValue& each : list(client, "nodes/")) {
    auto node = Node::decode(each.value);
    if (!node) continue;
    node->joined = each.created;
    node->revision = each.modified;
    view.nodes.push_back(std::move(*node));
  }
  if (view.epoch) {
    for (const EtcdValue& each : list(client, "outcomes/" + std::to_string(view.epoch->number) + '/')) {
      auto outcome = NodeOutcome::decode(each.value);
      if (outcome && view.epoch->find(outcome->node) != nullptr) view.outcomes.push_back(std::move(*outcome));
    }
  }
  std::ranges::sort(view.nodes, {}, &Node::joined);
  std::vector<std::string> there;
  for (const Node& node : view.nodes) there.push_back(node.id);
  if (there != std::exchange(seen_, there)) quiet_since_ns_ = monotonic_ns();
  view.quiet = seconds(monotonic_ns() - quiet_since_ns_);
  return view;
}

// The eldest node writes what all of them have concluded, if nobody has written since it looked, and its own key is
// there.
void Membership::act(EtcdClient& client, const EpochView& view) {
  if (view.nodes.empty() || view.nodes.front().id != options_.self.id) return;
  const auto next = next_epoch(view, options_.limits);
  if (!next) return;
  const EtcdCondition unchanged{key("epoch"), view.epoch ? view.epoch->revision : 0};
  const EtcdCondition there{key("nodes/" + options_.self.id), view.nodes.front().revision};
  if (boot_ns() >= lease_until_ns_ || !client.put_if({unchanged, there}, key("epoch"), next->encode())) return;
  // Nobody looks at those of epochs before the last one, however long the run. What can't be removed now stays.
  if (next->number <= 2) return;
  try {
    renew(client);
    client.remove(key(cat("outcomes/", next->number - 2, '/')));
  } catch (const CommError&) {
  }
}

void Membership::tell_of_waiting(const EpochView& view) {
  const Epoch* const epoch = view.epoch && view.epoch->number > before_ ? &*view.epoch : nullptr;
  const bool runs = epoch != nullptr && !epoch->ended && broken(view).empty();
  std::string line;
  if (runs && epoch->find(options_.self.id) == nullptr) {
    line = cat("this node is a spare one: ", epoch->nodes.size(), " nodes train in epoch ", epoch->number);
  } else if (!runs && !(epoch != nullptr && epoch->ended) &&
             std::ssize(view.nodes) < (epoch != nullptr ? options_.limits.least : options_.limits.most)) {
    const int wanted = options_.limits.least;
    line = cat(view.nodes.size(), " of ", wanted, wanted < options_.limits.most ? " or more" : "",
               " nodes have come to run ", options_.run);
  }
  const int64_t now = monotonic_ns();
  if (line.empty() || (line == told_ && now - told_ns_ < 10 * kTellEveryNs) || now - told_ns_ < kTellEveryNs) return;
  told_ = line;
  told_ns_ = now;
  options_.say(line);
}

void Membership::follow() {
  std::string told_error;
  while (true) {
    std::string error;
    EpochView view;
    try {
      view = look(followers_);
      if (!lost_) act(followers_, view);
    } catch (const std::exception& failure) {
      error = failure.what();
    }
    if (!error.empty() && error != std::exchange(told_error, error)) options_.say(cat("warning: ", error));
    if (error.empty()) {
      told_error.clear();
      tell_of_waiting(view);
    }
    std::unique_lock lock(mutex_);
    // What is seen after the lease may be another run's.
    if (error.empty() && !lost_) {
      view_ = std::move(view);
      const bool is_ours = view_.epoch && view_.epoch->number > before_;
      if (is_ours && run_.empty()) run_ = view_.epoch->run;
    }
    error_ = error;
    changed_.notify_all();
    if (changed_.wait_for(lock, kLook, [this] { return done_; })) return;
  }
}

std::optional<Epoch> Membership::wait_after(int last) {
  Stopwatch waited, unheard;
  std::unique_lock lock(mutex_);
  while (true) {
    if (lost_) throw CommError(kLeaseEnded);
    if (error_.empty()) unheard.restart();
    if (unheard.seconds() > options_.patience) throw CommError(error_);
    const bool is_ours = view_.epoch && view_.epoch->number > before_;
    if (is_ours) check_same_run(*view_.epoch);
    if (is_ours && view_.epoch->ended) return view_.epoch;
    // Also one that another node has broken already: its members tell that they have ended.
    if (is_ours && view_.epoch->number > last && view_.epoch->find(options_.self.id) != nullptr) return view_.epoch;
    const bool runs = is_ours && broken(view_).empty();
    if (runs) waited.restart();  // others train: this node is a spare one, or done before them
    if (options_.stop_asked()) return std::nullopt;
    if (waited.seconds() > options_.timeout) {
      throw CommError("run ", options_.run, ": ", view_.nodes.size(), " of at least ", options_.limits.least,
                      " nodes have come within ", options_.timeout, " s",
                      error_.empty() ? "; start the launcher on the others" : cat("; ", error_));
    }
    changed_.wait_for(lock, kLook);
  }
}

Membership::RanksEnd Membership::ranks_must_end(int epoch) const {
  if (lost_ || boot_ns() >= lease_until_ns_) {
    return {.why = "etcd has not been reached in time, and others act in this node's place", .at_once = true};
  }
  const std::lock_guard lock(mutex_);
  if (!view_.epoch || view_.epoch->number < epoch) return {};
  if (view_.epoch->number > epoch || view_.epoch->ended) return {.why = view_.epoch->why};
  return {.why = broken(view_), .for_a_peer = broken_for_a_peer(view_)};
}

void Membership::tell(int epoch, NodeOutcome outcome) {
  outcome.node = options_.self.id;
  const std::string place = key("outcomes/" + std::to_string(epoch) + '/' + outcome.node);
  Stopwatch waited;
  std::string why;
  // Who is asked to stop waits no longer than the others do for this node.
  while (waited.seconds() < (outcome.asked || options_.stop_asked() ? kLease : options_.patience)) {
    try {
      if (boot_ns() < lease_until_ns_ && !lost_) register_self(client_);
      if (boot_ns() < lease_until_ns_ && !lost_) {
        client_.put(place, outcome.encode());
        return;
      }
    } catch (const Error& error) {
      why = error.what();
    }
    if (lost_) throw CommError(kLeaseEnded);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLook);
  }
  throw CommError("etcd was not told that the ranks of this node ", outcome.text, ": ", why);
}

}  // namespace lockstep::launch
