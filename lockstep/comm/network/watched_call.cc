#include "lockstep/comm/network/watched_call.h"

#include <algorithm>

#include "lockstep/base/text.h"

namespace lockstep::comm {

std::string WatchedCall::text() const {
  return number == 0 || is_message() ? label : cat(label, ", call #", number - 1);
}

Comparison compare(const WatchedCall& call, int self, const std::vector<History>& posts) {
  const auto& ranks = call.group.ranks;
  Comparison found;
  found.called.resize(static_cast<size_t>(*std::max_element(ranks.begin(), ranks.end())) + 1);
  for (size_t k = 0; k < ranks.size(); ++k) {
    if (const Post* post = posts[k].find(call.number)) {
      found.called[static_cast<size_t>(ranks[k])] = in_world_ranks(post->signature, ranks);
      found.differs = found.differs || post->signature != call.signature;
    }
    if (posts[k].newest() < call.number && ranks[k] != self) found.missing.push_back(ranks[k]);
  }
  std::sort(found.missing.begin(), found.missing.end());
  return found;
}

BlockedCall blocked_call(uint64_t wait, const WatchedCall& call, const BegunCalls& begun, size_t size) {
  BlockedCall blocked{.wait = wait, .kind = call.signature.kind, .number = call.number, .begun = begun};
  if (call.is_message()) {
    blocked.peer = call.expects.at(0);
    blocked.tag = call.tag;
    blocked.what = call.label;
    blocked.needs = call.needs;
    blocked.ranks = call.expects;
    return blocked;
  }
  const std::vector<int>& ranks = call.group.ranks;
  blocked.what = cat(text_of(in_world_ranks(call.signature, ranks), call.number - 1), " of ",
                     group_text(ranks, ranks.size() == size));
  blocked.needs = call.group.name;
  blocked.ranks = ranks;
  return blocked;
}

}  // namespace lockstep::comm
