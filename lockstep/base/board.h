// The board: some pages of shared memory in which every local rank publishes its state for the launcher, the
// dashboard and the other ranks. The layout is plain, without pointers. Every field that changes is an atomic, so a
// reader may look at any time, and a rank that dies in the middle of a write harms nobody.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "lockstep/base/clock.h"

namespace lockstep {

constexpr int kMaxLocalRanks = 64;

// A line of text that one process writes and any process may read. It has two places: a new line goes into the one
// that readers do not look at, and then becomes the line by the change of one number. So a reader has a whole line at
// any time, even if the writer died in the middle of the next one.
template <size_t Bytes>
class BoardText {
 public:
  void set(std::string_view text) {
    if (text.size() >= Bytes) return set(cut(text));
    const uint32_t version = version_.load(std::memory_order_relaxed) + 1;
    Place& place = places_[version % 2];
    // A reader that meets a letter of this line in its place sees the change to the line before it as well.
    for (size_t i = 0; i < Bytes; ++i) place[i].store(i < text.size() ? text[i] : '\0', std::memory_order_release);
    place[Bytes - 1].store('\0', std::memory_order_release);
    version_.store(version, std::memory_order_release);
  }
  std::string get() const {
    for (std::string text;; text.clear()) {
      const uint32_t version = version_.load(std::memory_order_acquire);
      for (const auto& letter : places_[version % 2]) {
        const char c = letter.load(std::memory_order_acquire);
        if (c == '\0') break;
        text += c;
      }
      // The writer comes to this place again only after it has changed the number.
      if (version_.load(std::memory_order_relaxed) == version) return text;
    }
  }

 private:
  using Place = std::array<std::atomic<char>, Bytes>;
  // What there is room for, with "…" at its end; no letter is cut.
  static std::string cut(std::string_view text) {
    constexpr std::string_view kMore = "…";
    size_t end = Bytes - 1 - kMore.size();
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    return std::string(text.substr(0, end)) + std::string(kMore);
  }
  std::atomic<uint32_t> version_;
  std::array<Place, 2> places_;
};

enum class RankState : uint32_t { kStarting = 0, kRunning = 1, kFailed = 2, kFinished = 3 };

// The state that a rank publishes about itself. As long as the rank runs, it alone writes here.
struct BoardRank {
  std::atomic<int32_t> pid;
  std::atomic<RankState> state;
  std::atomic<int32_t> exit_code;       // where `ended` is not 0
  std::atomic<uint32_t> ended;          // not 0: the last program has said how it ended, in a world or without one
  std::atomic<uint32_t> command_ended;  // not 0: the launcher has seen the end of the rank's command
  std::atomic<uint32_t> counts_steps;   // not 0: the program says in `step` how far it is, also where that is 0
  std::atomic<uint32_t> writes_stack;   // not 0: SIGUSR2 makes its main thread write its stack (stack_on_signal.h)
  std::atomic<uint32_t> saving;         // not 0 while the rank writes a checkpoint (SavingOnBoard)
  std::atomic<uint32_t> blocked;        // its threads that wait for ranks over a network and do nothing else
  // Of the programs that the rank's command has run, one after the other: how many have begun to join a world of
  // several ranks, and whether one of them has counted its calls in the node's memory.
  std::atomic<uint32_t> worlds, counted_calls;
  std::atomic<uint64_t> step;           // the step being computed
  std::atomic<int64_t> beat_ns;         // the rank's heartbeat: monotonic_ns() when it last made progress
  std::atomic<uint64_t> sequence;       // collectives begun
  std::atomic<uint64_t> reduced_bytes;  // bytes of gradients that all steps so far have reduced
  std::atomic<int64_t> reduce_ns;       // time during which their all-reduces were in flight
  std::atomic<int64_t> reduce_wait_ns;  // the part of it that backward did not hide: this rank waited
  // Data, of all steps so far: the time that this rank's steps stood still for the loader, and that of reading,
  // decoding and transforming their samples in all of its threads.
  std::atomic<int64_t> data_wait_ns;
  std::atomic<int64_t> data_read_ns;
  std::atomic<int64_t> data_decode_ns;
  std::atomic<int64_t> data_transform_ns;
  std::atomic<uint64_t> missed;  // the local ranks, a bit each, for which it has given up waiting after the timeout
  BoardText<96> doing;           // "fold of bucket 2/5 (layer3.conv1.weight …)"
  BoardText<2048> error;         // with kFailed: the error as one line
  BoardText<128> overflow;       // the last step that the loss scaler skipped: "step 12: conv1.weight"
  BoardText<64> role;            // in a form of parallel training whose ranks differ: "stage 1 of 2"
  BoardText<64> remedy;          // with kFailed: options with which the run can go on: "--skip-bad 4"

  // Makes the entry that of the program which calls it: forgets what an earlier one of the rank's command has
  // published, and counts it in `worlds`, by which ranks in that one's world see that it is left.
  void begin();
  // The rank's state as far as it concerns this one of its command's programs: kStarting as long as that has not begun.
  RankState state_in(uint32_t program) const {
    const bool is_last = command_ended.load() != 0;
    const bool has_begun = worlds.load() >= program;  // before the state, which may be an earlier one's
    return is_last || has_begun ? state.load(std::memory_order_acquire) : RankState::kStarting;
  }
  // Publishes that the rank has made progress just now: who waits for it goes on waiting.
  void beat() { beat_ns.store(monotonic_ns(), std::memory_order_relaxed); }
  // Publishes progress at `at_ns`, unless there is later progress already. A rank that waits has made the progress of
  // those that it waits for, at the time when they made it: so those who wait for the rank wait for them, and ranks
  // that wait for each other have none. Any thread.
  void raise_beat(int64_t at_ns) {
    for (int64_t last = beat_ns.load(); last < at_ns && !beat_ns.compare_exchange_weak(last, at_ns);) {
    }
  }
  // Publishes that the rank has done all that it had to do, and exits with `code`: 0, or 75 if it was asked to stop. Of
  // a program that has joined no world nobody may think that the rank has left one.
  void finish(int code) {
    exit_code.store(code, std::memory_order_relaxed);
    ended.store(1);
    RankState running = RankState::kRunning;
    if (!state.compare_exchange_strong(running, RankState::kFinished)) pid.store(0);
  }
  // Publishes that the rank gives up waiting for another of its node. Any thread.
  void miss(int local_rank) { missed.fetch_or(uint64_t{1} << local_rank, std::memory_order_relaxed); }
  // Publishes that the rank failed: `code` is its exit code, `line` the error as one line.
  void fail(int code, std::string_view line) {
    error.set(line);
    exit_code.store(code, std::memory_order_relaxed);
    ended.store(1);
    state.store(RankState::kFailed, std::memory_order_release);
  }
};

// Says on the board, as long as it lives, that the rank writes a checkpoint: if another rank fails meanwhile, the
// launcher lets this one finish the file.
class SavingOnBoard {
 public:
  explicit SavingOnBoard(BoardRank& self) : self_(self) { self_.saving.fetch_add(1, std::memory_order_relaxed); }
  SavingOnBoard(const SavingOnBoard&) = delete;
  SavingOnBoard& operator=(const SavingOnBoard&) = delete;
  ~SavingOnBoard() { self_.saving.fetch_sub(1, std::memory_order_release); }

 private:
  BoardRank& self_;
};

struct Board {
  static constexpr uint32_t kMagic = 0x4c4f434b;  // "LOCK"
  static constexpr uint32_t kVersion = 14;

  std::atomic<uint32_t> magic;
  uint32_t version;
  int32_t local_ranks;
  // 1 once Ctrl-C or SIGTERM has reached the launcher. Rank 0 reads it at every step, and all ranks stop together.
  std::atomic<uint32_t> stop_requested;
  std::atomic<uint64_t> first_step_ns;  // monotonic_ns() at the end of the run's first training step, 0 before
  std::atomic<uint64_t> wanted_bytes;   // of memory that ranks are asking the system for now (MemoryClaim)
  std::atomic<int32_t> columns;         // the width of the launcher's terminal; 0: its output goes elsewhere
  std::atomic<int64_t> paused_ns;  // how long the launcher had its ranks stopped in all (Ctrl-Z): waits don't count it
  // Until when the ranks may replace files of the run: boot_ns(), which the launcher moves on; 0: for ever.
  std::atomic<int64_t> lease_until_ns;
  BoardText<256> saved;  // the name of the newest checkpoint, for reports
  std::array<BoardRank, kMaxLocalRanks> ranks;

  // Initialises a board in `memory`, sizeof(Board) zeroed bytes that the caller owns.
  static Board* create(void* memory, int local_ranks);
  // The board that another process created in `memory`. Throws BugError if there is none of this version.
  static Board* attach(void* memory);

  // Nanoseconds of a clock that stands still while the launcher has its ranks stopped (Ctrl-Z). It may go back a
  // little: the pause is counted at its end, and begins before all ranks stand still.
  int64_t running_ns() const { return monotonic_ns() - paused_ns.load(std::memory_order_relaxed); }
};

}  // namespace lockstep
