#include "lockstep/comm/shm/wait_reports.h"

#include <algorithm>

namespace lockstep::comm {

uint64_t WaitReports::local_bits(const std::vector<int>& ranks) const {
  uint64_t bits = 0;
  for (size_t local = 0; local < world_ranks_.size(); ++local) {
    const bool waited_for = std::find(ranks.begin(), ranks.end(), world_ranks_[local]) != ranks.end();
    if (waited_for) bits |= uint64_t{1} << local;
  }
  return bits;
}

std::string WaitReports::look(const WaitingRank& own) {
  WaitReport& report = segment_.waits[static_cast<size_t>(self_)];
  report.waits_for.store(local_bits(own.waits_for));
  if (!reported_) {
    report.kind.store(own.kind);
    report.peer.store(own.peer);
    report.tag.store(own.tag);
    report.what.set(own.what);
    report.wait.store(++waits_);
    reported_ = true;
  }
  report.beats.fetch_add(1);
  const auto circle = find_circle(read(), world_ranks_[static_cast<size_t>(self_)]);
  return check_.confirms(circle) ? circle_text(circle) : "";
}

void WaitReports::end() {
  if (!reported_) return;
  segment_.waits[static_cast<size_t>(self_)].wait.store(0);
  reported_ = false;
  check_ = {};
}

// A report that changes while it is read has another number of beats the next time, or another wait.
std::vector<WaitingRank> WaitReports::read() const {
  std::vector<WaitingRank> waiting;
  for (size_t local = 0; local < world_ranks_.size(); ++local) {
    const WaitReport& report = segment_.waits[local];
    WaitingRank rank{.rank = world_ranks_[local], .wait = report.wait.load(), .beats = report.beats.load()};
    if (rank.wait == 0) continue;
    rank.kind = report.kind.load();
    rank.peer = report.peer.load();
    rank.tag = report.tag.load();
    rank.what = report.what.get();
    const uint64_t bits = report.waits_for.load();
    for (size_t other = 0; other < world_ranks_.size(); ++other) {
      if ((bits >> other & 1) != 0) rank.waits_for.push_back(world_ranks_[other]);
    }
    waiting.push_back(std::move(rank));
  }
  return waiting;
}

}  // namespace lockstep::comm
