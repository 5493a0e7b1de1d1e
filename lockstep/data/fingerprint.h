// What tells data in memory from other data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace lockstep::data {

// XXH3 (64 bits) of all that is added, whatever the pieces. One thread.
class Fingerprint {
 public:
  Fingerprint();
  ~Fingerprint();
  void add(const void* bytes, size_t count);
  template <typename Value>
  void add(std::span<const Value> values) {
    add(values.data(), values.size_bytes());
  }
  std::string hex() const;  // 16 lower-case hexadecimal digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::data
