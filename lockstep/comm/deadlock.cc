#include "lockstep/comm/deadlock.h"

#include <algorithm>
#include <map>
#include <set>

#include "lockstep/base/text.h"

namespace lockstep::comm {
namespace {

bool is_message(const WaitingRank& rank) { return rank.kind == OpKind::kSend || rank.kind == OpKind::kReceive; }

bool all_are(const std::vector<WaitingRank>& circle, OpKind kind) {
  return std::all_of(circle.begin(), circle.end(), [kind](const WaitingRank& rank) { return rank.kind == kind; });
}

// Whether two ranks of the circle are the ends of a message but for its tag.
bool crossed_tags(const std::vector<WaitingRank>& circle) {
  if (circle.size() != 2 || !is_message(circle[0]) || !is_message(circle[1])) return false;
  return circle[0].kind != circle[1].kind && circle[0].tag != circle[1].tag;
}

const char* remedy(const std::vector<WaitingRank>& circle) {
  if (all_are(circle, OpKind::kSend)) {
    return "a send ends when it is received, and each of these ranks would receive after its send; use isend, receive, "
           "and then wait for the send";
  }
  if (all_are(circle, OpKind::kReceive)) return "none of them has sent yet; send with isend before receiving";
  if (crossed_tags(circle)) return "only a send and a receive of one tag match";
  if (std::none_of(circle.begin(), circle.end(), is_message)) {
    return "every rank must make the same calls in the same order, and each of them in the same group of ranks";
  }
  return "none of these calls matches another; every rank must make calls that match, in the same order";
}

class Search {
 public:
  explicit Search(const std::vector<WaitingRank>& waiting) {
    for (const WaitingRank& rank : waiting) by_rank_[rank.rank] = &rank;
  }

  // Whether a circle is reachable from `rank`; path_ ends with it then.
  bool visit(int rank) {
    const auto on_path = std::find(path_.begin(), path_.end(), rank);
    if (on_path != path_.end()) {
      path_.erase(path_.begin(), on_path);
      return true;
    }
    const auto found = by_rank_.find(rank);
    if (found == by_rank_.end() || !visited_.insert(rank).second) return false;
    path_.push_back(rank);
    for (const int next : found->second->waits_for) {
      if (visit(next)) return true;
    }
    path_.pop_back();
    return false;
  }

  std::vector<WaitingRank> circle() const {
    std::vector<WaitingRank> circle;
    for (const int rank : path_) circle.push_back(*by_rank_.at(rank));
    const auto lowest =
        std::min_element(circle.begin(), circle.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    std::rotate(circle.begin(), lowest, circle.end());
    return circle;
  }

 private:
  std::map<int, const WaitingRank*> by_rank_;
  std::vector<int> path_;
  std::set<int> visited_;
};

}  // namespace

std::vector<WaitingRank> find_circle(const std::vector<WaitingRank>& waiting, int from) {
  Search search(waiting);
  return search.visit(from) ? search.circle() : std::vector<WaitingRank>{};
}

std::string group_text(std::vector<int> ranks, bool is_world) {
  if (is_world) return "the world";
  std::sort(ranks.begin(), ranks.end());
  return cat("the group of ranks ", ranges(ranks));
}

std::string circle_text(const std::vector<WaitingRank>& circle) {
  constexpr size_t kMostTold = 4;
  std::string text;
  for (size_t i = 0; i < std::min(circle.size(), kMostTold); ++i) {
    text += cat(i == 0 ? "" : ", ", "rank ", circle[i].rank, i == 0 ? " waits in " : " in ", circle[i].what);
  }
  if (circle.size() > kMostTold) text += cat(" and ", circle.size() - kMostTold, " more in the same way");
  return cat(text, ": ", remedy(circle));
}

bool CircleCheck::is_later(const std::vector<WaitingRank>& circle) const {
  // A look at the calls that was under way when the circle was seen first does not count, hence two.
  return std::equal(circle.begin(), circle.end(), seen_.begin(), seen_.end(),
                    [](const auto& now, const auto& before) { return now.beats >= before.beats + 2; });
}

bool CircleCheck::confirms(const std::vector<WaitingRank>& circle) {
  constexpr int kTimes = 3;  // once each for: the ranks have matched what they can, and have seen what was matched
  const bool same = std::equal(circle.begin(), circle.end(), seen_.begin(), seen_.end(),
                               [](const auto& a, const auto& b) { return a.rank == b.rank && a.wait == b.wait; });
  if (circle.empty() || !same) {
    seen_ = circle;
    times_ = circle.empty() ? 0 : 1;
  } else if (is_later(circle)) {
    seen_ = circle;
    ++times_;
  }
  return times_ >= kTimes;
}

}  // namespace lockstep::comm
