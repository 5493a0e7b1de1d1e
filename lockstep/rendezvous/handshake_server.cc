#include "lockstep/rendezvous/handshake_server.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/remote_error.h"

namespace lockstep::rendezvous {
namespace {

// The most connections without a Hello, of which the oldest is then closed. Ranks send their Hello at once.
constexpr size_t kMostPending = 2 * kMaxLocalRanks;

constexpr double kCheckSeconds = 0.1;

std::string pid_text(const Credentials& who) { return who.pid == 0 ? "" : cat(" (pid ", who.pid, ")"); }

}  // namespace

std::vector<int> missing_ranks(const Board& board, int size) {
  std::vector<int> missing;
  for (int rank = 0; rank < size; ++rank) {
    if (board.ranks[static_cast<size_t>(rank)].pid.load() == 0) missing.push_back(rank);
  }
  return missing;
}

std::string missing_text(const Place& place, const std::vector<int>& missing, double seconds) {
  return cat("rank ", place.rank, ": waited ", std::round(10 * seconds) / 10, " s at ", place.rendezvous, " for ",
             named_ranks(missing), " of ", place.size,
             "; see whether they were started and what their logs say, or raise the timeout");
}

HandshakeServer::HandshakeServer(const Place& place, const NodeMemory& memory, const Descriptor& listener)
    : place_(place),
      listener_(listener),
      board_memory_(memory.board.get()),
      board_(Board::attach(board_memory_.data())),
      descriptors_{memory.board.get(), memory.comm.get()},
      members_(static_cast<size_t>(place.local_size)) {
  for (const auto& pool : memory.pools) descriptors_.push_back(pool.get());
  board_->ranks[0].pid.store(getpid());
}

bool HandshakeServer::complete() const {
  return std::all_of(members_.begin() + 1, members_.end(), [](const Member& each) { return bool{each.connection}; });
}

void HandshakeServer::gather(const Deadline& deadline, const std::function<void()>& check) {
  const Stopwatch watch;
  Stopwatch unchecked;
  while (!complete()) {
    if (deadline.passed()) {
      throw CommError(missing_text(place_, missing_ranks(*board_, place_.size), watch.seconds()));
    }
    if (unchecked.seconds() > kCheckSeconds) {
      check();
      unchecked.restart();
    }
    wait_for_event(deadline);
    check_members();
    accept_connections();
    receive_hellos();
  }
}

void HandshakeServer::wait_for_event(const Deadline& deadline) {
  std::vector<pollfd> all{{listener_.get(), POLLIN, 0}};
  for (const auto* list : {&pending_, &members_}) {
    for (const auto& each : *list) all.push_back({each.connection.get(), POLLIN, 0});  // poll ignores -1
  }
  constexpr int kMostMs = static_cast<int>(kCheckSeconds * 1000) + 1;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()).count();
  poll(all.data(), all.size(), static_cast<int>(std::clamp<int64_t>(ms + 1, 1, kMostMs)));
}

void HandshakeServer::accept_connections() {
  while (Descriptor connection = accept_next(listener_.get())) {
    const Credentials who = peer_credentials(connection.get());
    if (who.uid != geteuid()) continue;
    if (pending_.size() == kMostPending) pending_.erase(pending_.begin());
    pending_.push_back({std::move(connection), who});
  }
}

void HandshakeServer::receive_hellos() {
  for (size_t i = 0; i < pending_.size();) {
    const auto packet = receive_packet(pending_[i].connection.get(), Notice::kMostBytes);
    if (!packet) {
      ++i;
      continue;
    }
    const auto hello = Hello::decode(packet->bytes);
    const auto notice = hello ? std::nullopt : Notice::decode(packet->bytes);
    if (notice && notice->kind == NoticeKind::kGivenUp) throw_error(notice->exit_code, notice->reason);
    if (hello) check_hello(*hello, pending_[i].who);
    Member member = std::move(pending_[i]);
    pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(i));
    if (hello) admit(hello->rank, std::move(member));
  }
}

// An admitted rank that sends another packet gives up or has ended.
void HandshakeServer::check_members() {
  for (size_t rank = 1; rank < members_.size(); ++rank) {
    const Member& member = members_[rank];
    const auto packet = member.connection ? receive_packet(member.connection.get(), Notice::kMostBytes) : std::nullopt;
    if (!packet) continue;
    const auto notice = Notice::decode(packet->bytes);
    if (notice && notice->kind == NoticeKind::kGivenUp) throw_error(notice->exit_code, notice->reason);
    throw CommError("rank ", rank, pid_text(member.who), " died while the ranks met at ", place_.rendezvous,
                    "; see its log");
  }
}

void HandshakeServer::check_hello(const Hello& hello, const Credentials& who) const {
  const std::string peer = cat("rank ", hello.rank, pid_text(who));
  if (hello.version != Hello::kVersion) {
    throw ConfigError(peer, " speaks version ", hello.version, " of the handshake's protocol, rank 0 version ",
                      Hello::kVersion, "; start all ranks from one build");
  }
  if (hello.size != place_.size || hello.local_size != place_.local_size) {
    throw ConfigError(peer, " was started in a world of ", hello.size, " ranks with ", hello.local_size,
                      " on its node, rank 0 in a world of ", place_.size, " with ", place_.local_size,
                      "; start all ranks with the same world size");
  }
  if (hello.rank < 0 || hello.rank >= place_.size || hello.local_rank != hello.rank) {
    throw ConfigError(peer, " says that it is local rank ", hello.local_rank, " in a world of ", place_.size,
                      " ranks on one node; ranks go from 0 to ", place_.size - 1);
  }
  const bool taken = hello.rank == 0 || members_[static_cast<size_t>(hello.rank)].connection;
  if (taken) {
    const int other = board_->ranks[static_cast<size_t>(hello.rank)].pid.load();
    throw ConfigError("two processes, pid ", other, " and pid ", who.pid, ", say that they are rank ", hello.rank,
                      " of ", place_.size, "; give each its own rank");
  }
}

void HandshakeServer::admit(int rank, Member member) {
  // The pid is set here and not by the rank's communicator, for the rank may die before it has one.
  board_->ranks[static_cast<size_t>(rank)].pid.store(member.who.pid);
  send_packet(member.connection.get(), Notice{.kind = NoticeKind::kMemory}.encode(), descriptors_);
  members_[static_cast<size_t>(rank)] = std::move(member);
}

void HandshakeServer::release() {
  for (const auto& member : members_) {
    if (member.connection) send_packet(member.connection.get(), Notice{}.encode());
  }
}

int HandshakeServer::give_up(const Error& error) {
  accept_connections();
  const size_t told_before = told_.size();
  const std::string notice =
      Notice{.kind = NoticeKind::kGivenUp, .exit_code = error.exit_code(), .reason = error.what()}.encode();
  for (auto* list : {&pending_, &members_}) {
    for (Member& each : *list) {
      if (each.connection && send_packet(each.connection.get(), notice)) told_.push_back(std::move(each));
    }
  }
  pending_.clear();
  return static_cast<int>(told_.size() - told_before);
}

}  // namespace lockstep::rendezvous
