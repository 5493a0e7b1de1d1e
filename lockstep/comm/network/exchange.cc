#include "lockstep/comm/network/exchange.h"

#include "lockstep/comm/network/group_numbers.h"

namespace lockstep::comm {
namespace {

// The division of a tag's 31 bits, from the highest: whether it is a message of users'; the group; and then a
// collective's hash, or a message's tag, number and round. Calls of one group whose hashes are equal harm each other
// only if they differ: where they are the same on all members, messages between two ranks arrive in their order.
constexpr int kHashBits = 22, kRoundBits = 2, kNumberBits = 4, kUserBits = 15;
constexpr uint32_t kOfUsers = 1u << 30, kLargeTag = 1u << (kHashBits - 1);
static_assert(kUserBits + 1 + kNumberBits + kRoundBits == kHashBits);
static_assert(Exchange::kMostMessages == 1 << kNumberBits);
// The tags with all of the group's bits set are the mesh's own.
static_assert(GroupNumbers::kMost < 1 << (30 - kHashBits));

uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9;
}

}  // namespace

uint32_t Exchange::tag_of(size_t bytes) const {
  const uint32_t group = static_cast<uint32_t>(members_.number) << kHashBits;
  if (!user_tag_) {
    const uint64_t hash = mixed(mixed(mixed(salt_, bytes), number_), round_);
    return group | static_cast<uint32_t>(hash >> (64 - kHashBits));
  }
  const auto tag = static_cast<uint32_t>(*user_tag_);
  const uint32_t user = tag >> kUserBits == 0 ? 0 : kLargeTag;
  const uint32_t number = static_cast<uint32_t>(number_ % kMostMessages) << kRoundBits;
  return kOfUsers | group | user | (tag % (1u << kUserBits)) << (kNumberBits + kRoundBits) | number |
         static_cast<uint32_t>(round_ % (1u << kRoundBits));
}

std::vector<Message> Exchange::messages_of(const std::vector<Piece>& pieces) const {
  std::vector<Message> messages;
  for (const Piece& piece : pieces) {
    if (piece.bytes == 0) continue;
    messages.push_back({members_.ranks[static_cast<size_t>(piece.member)], tag_of(piece.bytes),
                        static_cast<std::byte*>(const_cast<void*>(piece.data)), piece.bytes, members_.number});
  }
  return messages;
}

void Exchange::operator()(const std::vector<Piece>& sends, const std::vector<Piece>& receives) {
  const auto out = messages_of(sends), in = messages_of(receives);
  ++round_;
  if (!out.empty() || !in.empty()) mesh_.exchange(out, in, patience_);
}

}  // namespace lockstep::comm
