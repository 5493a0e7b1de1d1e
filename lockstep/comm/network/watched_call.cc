#include "lockstep/comm/network/watched_call.h"

#include "lockstep/base/text.h"

namespace lockstep::comm {

std::string WatchedCall::text() const {
  return number == 0 || is_message() ? label : cat(label, ", call #", number - 1);
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
