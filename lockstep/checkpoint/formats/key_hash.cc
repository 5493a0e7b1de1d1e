#include "lockstep/checkpoint/formats/key_hash.h"

#include <bit>
#include <cstring>
#include <random>

namespace lockstep::checkpoint {
namespace {

struct Sip {
  uint64_t a, b, c, d;

  void round() {
    a += b, b = std::rotl(b, 13) ^ a, a = std::rotl(a, 32);
    c += d, d = std::rotl(d, 16) ^ c;
    a += d, d = std::rotl(d, 21) ^ a;
    c += b, b = std::rotl(b, 17) ^ c, c = std::rotl(c, 32);
  }
  void add(uint64_t word) {
    d ^= word;
    round();
    a ^= word;
  }
};

std::array<uint64_t, 2> drawn_secret() {
  std::random_device source;
  const auto word = [&] { return uint64_t{source()} << 32 | source(); };
  return {word(), word()};
}

}  // namespace

uint64_t sip_hash(std::string_view text, const std::array<uint64_t, 2>& secret) {
  Sip sip{secret[0] ^ 0x736f6d6570736575, secret[1] ^ 0x646f72616e646f6d, secret[0] ^ 0x6c7967656e657261,
          secret[1] ^ 0x7465646279746573};
  uint64_t word = 0;
  const uint64_t bytes = text.size();
  for (; text.size() >= sizeof word; text.remove_prefix(sizeof word)) {
    std::memcpy(&word, text.data(), sizeof word);
    sip.add(word);
  }
  word = bytes << 56;
  for (size_t i = 0; i < text.size(); ++i) word |= uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
  sip.add(word);
  sip.c ^= 0xff;
  for (int i = 0; i < 3; ++i) sip.round();
  return sip.a ^ sip.b ^ sip.c ^ sip.d;
}

uint64_t key_hash(const Key& key) {
  static const std::array<uint64_t, 2> secret = drawn_secret();
  if (const auto* text = std::get_if<std::string>(&key)) return sip_hash(*text, secret);
  const auto number = std::get<int64_t>(key);
  return sip_hash({reinterpret_cast<const char*>(&number), sizeof number}, secret);
}

}  // namespace lockstep::checkpoint
