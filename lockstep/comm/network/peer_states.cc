#include "lockstep/comm/network/peer_states.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/process_state.h"
#include "lockstep/base/text.h"

namespace lockstep::comm {
namespace {

constexpr double kSilentSeconds = 3;  // heartbeats come every half second
constexpr size_t kMostAsked = 64;
constexpr size_t kMostInCircle = 512;

}  // namespace

std::string Heartbeat::encode() const {
  std::string list;
  for (const int rank : stopped) list += cat(rank, ',');
  const std::string line =
      cat(count, ' ', list.empty() ? "-" : list, ' ', finished ? '1' : '0', ' ', age_ms, ' ', doing);
  return blocked ? cat(line, '\n', blocked->encode()) : line;
}

Heartbeat Heartbeat::decode(const std::string& text) {
  Heartbeat heartbeat;
  std::string list;
  const size_t line = text.find('\n');
  std::istringstream in(text.substr(0, line));
  in >> heartbeat.count >> list >> heartbeat.finished >> heartbeat.age_ms;
  std::getline(in >> std::ws, heartbeat.doing);
  if (line != std::string::npos) heartbeat.blocked = BlockedCall::decode(text.substr(line + 1));
  std::istringstream ranks(list == "-" ? "" : list);
  for (std::string rank; std::getline(ranks, rank, ',');) heartbeat.stopped.push_back(std::atoi(rank.c_str()));
  return heartbeat;
}

PeerStates::PeerStates(RankTable table, int self, Board* board)
    : table_(std::move(table)),
      self_(self),
      board_(board),
      neighbours_(ranks_of_node(table_, table_.at(static_cast<size_t>(self)).node)) {}

std::string PeerStates::last_heartbeat() { return Heartbeat{.count = ++heartbeats_, .finished = true}.encode(); }

std::string PeerStates::own_heartbeat(const std::optional<BlockedCall>& blocked) {
  Heartbeat heartbeat{.count = ++heartbeats_, .blocked = blocked};
  round_ns_ = running_ns();
  for (size_t local = 0; board_ != nullptr && local < neighbours_.size(); ++local) {
    const BoardRank& rank = board_->ranks[local];
    if (neighbours_[local] == self_) {
      heartbeat.doing = rank.doing.get();
      if (const int64_t beat_ns = rank.beat_ns.load()) heartbeat.age_ms = (monotonic_ns() - beat_ns) / 1'000'000 + 1;
      // A program that counts no steps is at none.
      const uint64_t step = rank.step.load();
      if (heartbeat.doing.empty()) heartbeat.doing = step == 0 ? "computing" : cat("at step ", step);
    } else if (const int pid = rank.pid.load(); pid != 0 && process_stopped(pid)) {
      heartbeat.stopped.push_back(neighbours_[local]);
    }
  }
  return heartbeat.encode();
}

void PeerStates::read_heartbeats(Bulletin& bulletin, const std::vector<int>& ranks) {
  std::set<int> wanted;
  for (const int rank : ranks) {
    if (wanted.size() > kMostAsked) break;
    const auto node = ranks_of_node(table_, table_.at(static_cast<size_t>(rank)).node);
    wanted.insert(node.begin(), node.end());
  }
  wanted.erase(self_);
  const std::vector<int> asked(wanted.begin(), wanted.end());
  const auto heartbeats = bulletin.heartbeats(asked);
  const std::lock_guard lock(mutex_);
  std::set<int> stopped;
  for (size_t k = 0; k < asked.size(); ++k) {
    Peer& peer = peers_[asked[k]];
    const Heartbeat heartbeat = Heartbeat::decode(heartbeats[k]);
    stopped.insert(heartbeat.stopped.begin(), heartbeat.stopped.end());
    if (peer.changed_ns == 0 || heartbeat.count != peer.heartbeat.count) {
      peer.changed_ns = monotonic_ns();
      // Written since the last look. Counted from then, news of progress never gets younger on its way through ranks.
      if (peer.read_ns != 0 && heartbeat.age_ms >= 0) {
        peer.progress_ns = std::max(peer.progress_ns, peer.read_ns - heartbeat.age_ms * 1'000'000);
      }
    }
    peer.heartbeat = heartbeat;
    peer.read_ns = round_ns_;
  }
  // The last report counts, for the neighbour that made it may be silent by now.
  for (const int rank : asked) peers_[rank].stopped = stopped.contains(rank);
}

std::string PeerStates::look_for_circle(Bulletin& bulletin, const BlockedCall& own) {
  std::map<int, BlockedCall> calls = {{self_, own}};
  std::map<int, uint64_t> beats = {{self_, heartbeats_}};
  std::set<int> asked = {self_};
  std::vector<int> next = own.ranks;
  while (!next.empty() && asked.size() < kMostInCircle) {
    next.erase(std::remove_if(next.begin(), next.end(), [&](int rank) { return !asked.insert(rank).second; }),
               next.end());
    read_heartbeats(bulletin, next);
    const std::lock_guard lock(mutex_);
    std::vector<int> further;
    for (const int rank : next) {
      const Heartbeat& heartbeat = peers_[rank].heartbeat;
      if (!heartbeat.blocked) continue;
      calls[rank] = *heartbeat.blocked;
      beats[rank] = heartbeat.count;
      further.insert(further.end(), heartbeat.blocked->ranks.begin(), heartbeat.blocked->ranks.end());
    }
    next = std::move(further);
  }
  const auto circle = find_circle(waiting_ranks(calls, beats), self_);
  return circle_.confirms(circle) ? circle_text(circle) : "";
}

bool PeerStates::has_finished(int rank) const {
  const std::lock_guard lock(mutex_);
  const auto at = peers_.find(rank);
  return at != peers_.end() && at->second.heartbeat.finished;
}

bool PeerStates::is_here(int rank) const {
  return board_ != nullptr && std::find(neighbours_.begin(), neighbours_.end(), rank) != neighbours_.end();
}

size_t PeerStates::local(int rank) const {
  return static_cast<size_t>(table_.at(static_cast<size_t>(rank)).local_rank);
}

void PeerStates::tell_missed(const std::vector<int>& ranks) const {
  for (const int rank : ranks) {
    if (is_here(rank)) board_->ranks[local(self_)].miss(static_cast<int>(local(rank)));
  }
}

uint32_t PeerStates::begin_block() const {
  if (board_ == nullptr) return 0;
  board_->ranks[local(self_)].blocked.fetch_add(1);
  return board_->ranks[local(self_)].worlds.load();
}

void PeerStates::end_block(uint32_t world) const {
  if (board_ == nullptr) return;
  BoardRank& self = board_->ranks[local(self_)];
  if (self.worlds.load() != world) return;  // a later init() has forgotten it
  std::atomic<uint32_t>& blocked = self.blocked;
  for (uint32_t count = blocked.load(); count > 0 && !blocked.compare_exchange_weak(count, count - 1);) {
  }
}

std::string PeerStates::fate_here(const std::vector<int>& ranks) const {
  for (const int rank : ranks) {
    if (rank == self_ || !is_here(rank)) continue;
    const BoardRank& of = board_->ranks[local(rank)];
    // Of one that has finished, or goes on with its command's next program, others may know more: calls that differ.
    const uint32_t program = board_->ranks[local(self_)].worlds.load();
    if (of.worlds.load() != program) continue;
    const int pid = of.pid.load();
    const char process = pid == 0 ? 'R' : process_state(pid);  // before the state, which a process that ends says first
    const RankState state = of.state_in(program);
    if (state == RankState::kFinished) continue;
    if (state == RankState::kFailed) {
      const int code = of.exit_code.load();
      if (code == CommError::kExitCode || code == DesyncError::kExitCode) continue;  // others know more
      return cat(called(rank), " failed: ", of.error.get());
    }
    if (process == '\0' || process == 'Z' || process == 'X') return cat(called(rank), " (pid ", pid, ") died");
  }
  return "";
}

int64_t PeerStates::running_ns() const { return board_ == nullptr ? monotonic_ns() : board_->running_ns(); }

// Of many ranks the first are asked, and the others when these are no longer missing.
int64_t PeerStates::progress_of(const std::vector<int>& ranks) const {
  const std::lock_guard lock(mutex_);
  std::optional<int64_t> slowest;
  for (const int rank : ranks) {
    const auto at = peers_.find(rank);
    if (at != peers_.end()) slowest = std::min(slowest.value_or(at->second.progress_ns), at->second.progress_ns);
  }
  return slowest.value_or(0);
}

void PeerStates::pass_on(int64_t progress_ns) {
  if (board_ == nullptr) return;
  auto& self = board_->ranks[static_cast<size_t>(table_.at(static_cast<size_t>(self_)).local_rank)];
  self.raise_beat(progress_ns + (monotonic_ns() - running_ns()));
}

std::vector<int> PeerStates::stopped() const {
  const std::lock_guard lock(mutex_);
  std::vector<int> ranks;
  for (const auto& [rank, peer] : peers_) {
    if (peer.stopped) ranks.push_back(rank);
  }
  return ranks;
}

std::string PeerStates::called(int rank) const {
  const std::string& host = table_.at(static_cast<size_t>(rank)).host;
  return cat("rank ", rank, host.empty() ? "" : cat(" (", host, ")"));
}

std::string PeerStates::describe(const std::vector<int>& missing) const {
  constexpr size_t kMostTold = 8;
  if (missing.empty()) return "";
  std::string text = cat(" for ", named_ranks(missing));
  for (size_t k = 0; k < std::min(missing.size(), kMostTold); ++k) {
    text += cat(k == 0 ? ": " : ", ", called(missing[k]), ' ', describe(missing[k]));
  }
  // Stopped ranks are listed too, for the missing ranks may be waiting for them.
  for (const int rank : stopped()) {
    const bool listed = std::find(missing.begin(), missing.end(), rank) != missing.end();
    if (!listed) text += cat(", ", called(rank), ' ', describe(rank));
  }
  return text;
}

std::string PeerStates::describe(int rank) const {
  const std::lock_guard lock(mutex_);
  const auto at = peers_.find(rank);
  if (at == peers_.end()) return "has not been heard of";
  const Peer& peer = at->second;
  if (peer.heartbeat.finished) return "has finished";
  if (peer.stopped) return "is stopped (SIGSTOP; kill -CONT lets it go on)";
  const double silent = seconds_since(peer.changed_ns);
  if (silent < kSilentSeconds) {
    const std::string& doing = peer.heartbeat.doing;
    const auto& blocked = peer.heartbeat.blocked;
    const bool waits = blocked && !blocked->ranks.empty();
    return cat("is alive", doing.empty() ? "" : cat(", ", doing),
               waits ? cat(", waits for ", named_ranks(blocked->ranks)) : "");
  }
  return cat("has given no sign of life for ", silent, " s: stopped, or cut off");
}

}  // namespace lockstep::comm
