// XXH3 (64 bits), by xxHash: a fast hash that finds damage and changes; no defence against forgery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

uint64_t xxh3(std::span<const uint8_t> bytes);
uint64_t xxh3(std::string_view text);

// The same of bytes that come in pieces of any size. One thread.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  void add(const void* bytes, size_t count);
  template <typename Value>
  void add(std::span<const Value> values) {
    add(values.data(), values.size_bytes());
  }
  uint64_t value() const;  // of all bytes so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// 16 lower-case hexadecimal digits.
std::string hex(uint64_t hash);

}  // namespace lockstep
