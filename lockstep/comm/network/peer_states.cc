#include "lockstep/comm/network/peer_states.h"

#include <cstdlib>
#include <set>
#include <sstream>

#include "lockstep/base/clock.h"
#include "lockstep/base/process_state.h"
#include "lockstep/base/text.h"

namespace lockstep::comm {
namespace {

constexpr double kSilentSeconds = 3;  // heartbeats come every half second
constexpr size_t kMostAsked = 64;

}  // namespace

std::string Heartbeat::encode() const {
  std::string list;
  for (const int rank : stopped) list += cat(rank, ',');
  return cat(count, ' ', list.empty() ? "-" : list, ' ', doing);
}

Heartbeat Heartbeat::decode(const std::string& text) {
  Heartbeat heartbeat;
  std::string list;
  std::istringstream in(text);
  in >> heartbeat.count >> list;
  std::getline(in >> std::ws, heartbeat.doing);
  std::istringstream ranks(list == "-" ? "" : list);
  for (std::string rank; std::getline(ranks, rank, ',');) heartbeat.stopped.push_back(std::atoi(rank.c_str()));
  return heartbeat;
}

PeerStates::PeerStates(RankTable table, int self, Board* board)
    : table_(std::move(table)),
      self_(self),
      board_(board),
      neighbours_(ranks_of_node(table_, table_.at(static_cast<size_t>(self)).node)) {}

std::string PeerStates::own_heartbeat() {
  Heartbeat heartbeat{.count = ++heartbeats_};
  for (size_t local = 0; board_ != nullptr && local < neighbours_.size(); ++local) {
    const BoardRank& rank = board_->ranks[local];
    if (neighbours_[local] == self_) {
      heartbeat.doing = rank.doing.get();
      if (heartbeat.doing.empty()) heartbeat.doing = cat("step ", rank.step.load());
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
    if (peer.changed_ns == 0 || heartbeat.count != peer.heartbeat.count) peer.changed_ns = monotonic_ns();
    peer.heartbeat = heartbeat;
  }
  // The last report counts, for the neighbour that made it may be silent by now.
  for (auto& [rank, peer] : peers_) peer.stopped = stopped.contains(rank);
}

std::vector<int> PeerStates::stopped() const {
  const std::lock_guard lock(mutex_);
  std::vector<int> ranks;
  for (const auto& [rank, peer] : peers_) {
    if (peer.stopped) ranks.push_back(rank);
  }
  return ranks;
}

std::string PeerStates::describe(int rank) const {
  const std::lock_guard lock(mutex_);
  const auto at = peers_.find(rank);
  if (at == peers_.end()) return "has not been heard of";
  const Peer& peer = at->second;
  if (peer.stopped) return "is stopped (SIGSTOP; kill -CONT lets it go on)";
  const double silent = seconds_since(peer.changed_ns);
  if (silent < kSilentSeconds)
    return cat("is alive", peer.heartbeat.doing.empty() ? "" : cat(", at ", peer.heartbeat.doing));
  return cat("has given no sign of life for ", silent, " s: stopped, or cut off");
}

}  // namespace lockstep::comm
