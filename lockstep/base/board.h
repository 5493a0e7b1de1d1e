// The board: a page or two of shared memory to which every local rank writes its state, and which the launcher, the
// dashboard and the other ranks read. A plain layout without pointers; every field is an atomic, so a reader may look
// at any time and a rank that dies in the middle of a write harms nobody.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

constexpr int kMaxLocalRanks = 64;

// A line of text that one process writes and any may read: torn reads are noticed and tried again (a seqlock).
template <size_t Bytes>
class BoardText {
 public:
  void set(std::string_view text) {
    const uint32_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (size_t i = 0; i < Bytes; ++i) text_[i].store(i < text.size() ? text[i] : '\0', std::memory_order_relaxed);
    text_[Bytes - 1].store('\0', std::memory_order_relaxed);
    version_.store(version + 2, std::memory_order_release);
  }
  std::string get() const {
    constexpr int kMostReads = 100'000, kMostStill = 1000;
    std::string text;
    uint32_t last = 0;
    int still = 0;  // reads in a row that met the same half-done write
    for (int read = 0; read < kMostReads && still < kMostStill; ++read) {
      const uint32_t before = version_.load(std::memory_order_acquire);
      still = before % 2 == 1 && before == last ? still + 1 : 0;
      last = before;
      text.clear();
      for (const auto& letter : text_) {
        const char c = letter.load(std::memory_order_relaxed);
        if (c == '\0') break;
        text += c;
      }
      std::atomic_thread_fence(std::memory_order_acquire);
      if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) break;
    }
    return text;  // if the writer died in the middle: what there is
  }

 private:
  std::atomic<uint32_t> version_;
  std::array<std::atomic<char>, Bytes> text_;
};

enum class RankState : uint32_t { kStarting = 0, kRunning = 1, kFailed = 2, kFinished = 3 };

// What a rank says of itself. Written by that rank alone.
struct BoardRank {
  std::atomic<int32_t> pid;
  std::atomic<RankState> state;
  std::atomic<int32_t> exit_code;       // with kFailed
  std::atomic<uint64_t> step;           // the step being computed
  std::atomic<int64_t> beat_ns;         // monotonic_ns() when the rank last moved on
  std::atomic<uint64_t> sequence;       // collectives begun
  std::atomic<uint64_t> reduced_bytes;  // of gradients, by all steps together
  std::atomic<int64_t> reduce_ns;       // from when their buckets were full until they were reduced
  std::atomic<int64_t> reduce_wait_ns;  // of that, what backward did not hide: this rank waited
  BoardText<96> doing;                  // "fold of bucket 2/5 (layer3.conv1.weight …)"
  BoardText<512> error;                 // with kFailed: the error's line
  BoardText<128> overflow;              // the last step that the loss scaler skipped: "step 12: conv1.weight"

  void fail(int code, std::string_view line) {
    error.set(line);
    exit_code.store(code, std::memory_order_relaxed);
    state.store(RankState::kFailed, std::memory_order_release);
  }
};

struct Board {
  static constexpr uint32_t kMagic = 0x4c4f434b;  // "LOCK"
  static constexpr uint32_t kVersion = 3;

  std::atomic<uint32_t> magic;
  uint32_t version;
  int32_t local_ranks;
  std::atomic<uint32_t> stop_requested;  // 1: Ctrl-C or SIGTERM reached the launcher; rank 0 takes it to the step
  std::atomic<uint64_t> first_step_ns;   // monotonic_ns() at the end of the run's first training step, 0 before
  BoardText<256> saved;                  // the newest checkpoint, as reports name it
  std::array<BoardRank, kMaxLocalRanks> ranks;

  // In zeroed memory of sizeof(Board) bytes.
  static Board* create(void* memory, int local_ranks);
  // Checks what another process made; throws BugError if it is not a board of this version.
  static Board* attach(void* memory);
};

}  // namespace lockstep
