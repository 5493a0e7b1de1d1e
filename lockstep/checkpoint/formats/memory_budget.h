// A bound on the memory that reading a file takes, besides the file's own bytes. Whatever a file can make us allocate
// is charged before it is allocated.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/base/text.h"
#include "lockstep/checkpoint/formats/byte_cursor.h"

namespace lockstep::checkpoint {

// What malloc takes for a block: its header, and the rounding to 16 bytes.
constexpr uint64_t block_bytes(uint64_t bytes) {
  return bytes == 0 ? 0 : std::max<uint64_t>(32, (bytes + 8 + 15) / 16 * 16);
}

// What a std::string of so many characters allocates; short ones lie in the string itself.
constexpr uint64_t text_bytes(uint64_t length) { return length < 16 ? 0 : block_bytes(length + 1); }

// Nothing is given back: what a vector leaves behind when it grows is charged with it, as the heap may keep it.
class MemoryBudget {
 public:
  explicit MemoryBudget(uint64_t bytes) : whole_(bytes), left_(bytes) {}

  // Throws a Fault if less is left.
  void charge(uint64_t bytes) {
    if (bytes > left_) throw Fault{cat("would take more than ", human_bytes(whole_), " of memory besides its tensors")};
    left_ -= bytes;
  }
  uint64_t left() const { return left_; }

  // Charges what `vector` allocates when it takes `more` items.
  template <typename T>
  void charge_growth(const std::vector<T>& vector, size_t more) {
    charge((vector.empty() ? kSmallestBlock : 0) + 2 * sizeof(T) * uint64_t{more});
  }
  template <typename T>
  void push(std::vector<T>& vector, T item) {
    charge_growth(vector, 1);
    vector.push_back(std::move(item));
  }

 private:
  static constexpr uint64_t kSmallestBlock = 32;
  uint64_t whole_;
  uint64_t left_;
};

}  // namespace lockstep::checkpoint
