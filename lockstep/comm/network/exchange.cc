#include "lockstep/comm/network/exchange.h"

namespace lockstep::comm {
namespace {

// The division of a tag's 31 bits. The low ones tell apart messages that may be under way at once; the others are a
// hash of the rest.
constexpr int kRoundBits = 3, kNumberBits = 6, kHashBits = 22;

uint32_t tag_of(uint64_t salt, uint64_t number, uint64_t round, size_t bytes) {
  uint64_t hash = (salt ^ bytes) * 0x9e3779b97f4a7c15;
  hash = (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9;
  const uint64_t low = (number % (1 << kNumberBits)) << kRoundBits | round % (1 << kRoundBits);
  return static_cast<uint32_t>((hash >> (64 - kHashBits)) << (kNumberBits + kRoundBits) | low);
}

}  // namespace

std::vector<Message> Exchange::messages_of(const std::vector<Piece>& pieces) const {
  std::vector<Message> messages;
  for (const Piece& piece : pieces) {
    if (piece.bytes == 0) continue;
    messages.push_back({members_.ranks[static_cast<size_t>(piece.member)], tag_of(salt_, number_, round_, piece.bytes),
                        static_cast<std::byte*>(const_cast<void*>(piece.data)), piece.bytes});
  }
  return messages;
}

void Exchange::operator()(const std::vector<Piece>& sends, const std::vector<Piece>& receives) {
  const auto out = messages_of(sends), in = messages_of(receives);
  ++round_;
  if (!out.empty() || !in.empty()) mesh_.exchange(out, in, deadline_);
}

}  // namespace lockstep::comm
