#include "lockstep/comm/network/blocked_call.h"

#include <algorithm>
#include <sstream>

#include "lockstep/base/text.h"

namespace lockstep::comm {

void BegunCalls::add(const std::string& channel, uint64_t number) {
  Newest& newest = channels_[channel];
  newest = {std::max(newest.number, number), ++uses_};
  if (channels_.size() <= kMost) return;
  forgot_ = true;
  channels_.erase(std::min_element(channels_.begin(), channels_.end(),
                                   [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
}

bool BegunCalls::may_have(const std::string& channel, uint64_t number) const {
  const auto found = channels_.find(channel);
  return found == channels_.end() ? forgot_ : found->second.number >= number;
}

std::string BegunCalls::encode() const {
  std::string text = forgot_ ? "1" : "0";
  for (const auto& [channel, newest] : channels_) text += cat(' ', channel, ' ', newest.number);
  return text;
}

BegunCalls BegunCalls::decode(const std::string& line) {
  BegunCalls begun;
  std::istringstream in(line);
  in >> begun.forgot_;
  std::string channel;
  for (uint64_t number = 0; in >> channel >> number;) begun.channels_[channel] = {number, 0};
  return begun;
}

std::string BlockedCall::encode() const {
  std::string text = cat(wait, ' ', static_cast<uint32_t>(kind), ' ', peer, ' ', tag, ' ', needs, ' ', number);
  for (const int rank : ranks) text += cat(' ', rank);
  return cat(text, '\n', what, '\n', begun.encode(), '\n');
}

std::optional<BlockedCall> BlockedCall::decode(const std::string& lines) {
  BlockedCall call;
  std::istringstream in(lines);
  std::string first, begun;
  if (!std::getline(in, first) || !std::getline(in, call.what) || !std::getline(in, begun)) return std::nullopt;
  std::istringstream fields(first);
  uint32_t kind = 0;
  if (!(fields >> call.wait >> kind >> call.peer >> call.tag >> call.needs >> call.number)) return std::nullopt;
  call.kind = static_cast<OpKind>(kind);
  for (int rank = 0; fields >> rank;) call.ranks.push_back(rank);
  call.begun = BegunCalls::decode(begun);
  return call;
}

std::vector<WaitingRank> waiting_ranks(const std::map<int, BlockedCall>& calls, const std::map<int, uint64_t>& beats) {
  std::vector<WaitingRank> waiting;
  for (const auto& [rank, call] : calls) {
    WaitingRank own{.rank = rank,
                    .wait = call.wait,
                    .beats = beats.at(rank),
                    .kind = call.kind,
                    .peer = call.peer,
                    .tag = call.tag,
                    .what = call.what};
    for (const int other : call.ranks) {
      const auto found = calls.find(other);
      if (found != calls.end() && !found->second.begun.may_have(call.needs, call.number))
        own.waits_for.push_back(other);
    }
    waiting.push_back(std::move(own));
  }
  return waiting;
}

}  // namespace lockstep::comm
