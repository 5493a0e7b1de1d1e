// Two slots of memory for images of checkpoints, the snapshots. The ranks of a node fill a slot together, and whoever
// keeps the slots writes it to the disk (keeper.h). The memory is the launcher's, so that it outlives its ranks: a slot
// that is whole can be saved after all of them were killed, and one that is not is never taken for whole.
//
// The protocol. Before a rank writes into a slot it takes back `committed`; thereafter it publishes `done`. The rank
// that then finds all ranks done commits the slot. Several may find so, and commit the same. A slot's next filling
// begins after a collective of all ranks, so no rank still commits the last one then.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/base/log.h"
#include "lockstep/base/shared_memory.h"
#include "lockstep/checkpoint/files/byte_sums.h"

namespace lockstep::checkpoint {

struct SnapshotHeader {
  static constexpr uint64_t kMagic = 0x34544f4c534b434c;  // "LCKSLOT4"

  struct Slot {
    std::atomic<uint64_t> committed;    // 0: torn, else the steps done + 1
    std::atomic<uint64_t> file_bytes;   // of the image, which is the file but for its checksums and directory
    std::atomic<uint64_t> layout_hash;  // of the image that is being filled: all ranks have the same
    std::atomic<uint32_t> pinned;       // not 0: it waits for the disk, or is being written (Purpose)
    std::array<std::atomic<uint64_t>, kMaxLocalRanks> done;  // by local rank: the steps done + 1
    std::atomic<uint64_t> sums_at, sums_most;  // where checksums lie behind the image, and how many a rank
    std::array<std::atomic<uint32_t>, kMaxLocalRanks> sums;  // by local rank: how many there are
  };

  enum class Seen : uint32_t { kNotYet = 0, kYes = 1, kNo = 2 };

  std::atomic<uint64_t> magic;
  std::atomic<uint64_t> id;  // random: no other launcher's
  std::atomic<uint32_t> ranks;
  std::atomic<uint32_t> kept;  // not 0: the launcher writes what is pinned
  std::array<Slot, 2> slot;
  std::atomic<uint32_t> bell;           // counts what the keeper may be waiting for
  std::atomic<uint32_t> ended;          // pinned slots that have been written, or failed
  std::atomic<uint32_t> failed;         // of these, those that failed
  std::atomic<uint32_t> failed_in_row;  // the last ones that failed
  std::atomic<uint32_t> disk_full;      // not 0: the last one that failed met a full disk
  std::atomic<uint64_t> saved_best;     // the newest save of a best that was written: the steps done + 1
  std::atomic<uint64_t> lost_best;      // the newest one that failed, likewise
  std::atomic<uint64_t> progress;       // of writing; it grows
  BoardText<512> error;                 // of the last one that failed
  BoardText<4096> folder;               // checkpoints/ of the ranks' run, for a keeper that has not chosen it
  std::atomic<int32_t> keep_last;       // StepFolder's, likewise; 0: not told yet
  std::atomic<uint64_t> device, inode;  // of the run's folder, above it, as the ranks see it
  std::atomic<Seen> seen;               // whether the keeper's process sees the very folder
};

enum class Purpose : uint32_t { kSnapshot = 0, kSave = 1, kBest = 2 };  // kBest: a save of the best so far

class Slots {
 public:
  static constexpr const char* kVariable = "LOCKSTEP_SNAPSHOTS";  // in a rank's environment: the memory's descriptor

  // Memory for two slots, none of it backed yet: each has room for as much as the machine has. Throws IoError.
  static Descriptor create(int ranks);
  // The launcher's, by the environment; null where there are none. Throws IoError.
  static std::shared_ptr<Slots> inherited();

  // Whether two files of so many bytes fit into the memory that is left, and a quarter more, so that nothing else is
  // short of memory for them. Warns where they don't.
  // `resident`: bytes that are there for them already, and so are none of what is left. `besides`: what a save takes
  // beside them, as a state that is gathered.
  static bool have_room(uint64_t file_bytes, const Logger& log, uint64_t resident = 0, uint64_t besides = 0);
  // The bytes of memory that the slots take of what two files of so many bytes need: an earlier attempt's.
  uint64_t resident(uint64_t file_bytes) const;

  // Maps the memory of create(), which stays the caller's. Throws IoError, and BugError for other memory.
  explicit Slots(int memory);

  SnapshotHeader& header() const { return *mapping_.at<SnapshotHeader>(0); }
  static constexpr int kCount = 2;
  // The memory of a slot, whole pages.
  std::span<char> room(int slot) const;

  // Prepares for other ranks, when those before them are gone and nothing is written: all images are forgotten, for the
  // others begin with what is on the disk.
  void begin_anew(int ranks) const;

  // Tells a keeper that has no folder of its own where to write, before the first image. `folder` is absolute, in a
  // folder that exists. Throws IoError.
  void tell_folder(const std::string& folder, int keep_last) const;

  // Chooses the slot for the next image: one that is not pinned, and not the newest whole one if there is another.
  // Nothing if both are pinned. For one rank, which tells the others.
  std::optional<int> choose() const;
  // Announces this rank's filling of the slot. `bytes` and `layout_hash` are the image's.
  void begin(int slot, int rank, uint64_t bytes, uint64_t layout_hash) const;
  // Leaves the checksums of this rank's share with the image, before end(), so that the keeper need not read it for
  // them. `file_bytes` and `most`, the most checksums of a rank, are the same on all ranks.
  void leave_sums(int slot, int rank, uint64_t file_bytes, size_t most, std::span<const ByteSum> sums) const;
  // Publishes that this rank has copied its share; commits the slot if it is the last one.
  void end(int slot, int rank, int64_t step) const;
  // Asks the keeper to save the slot as soon as it is committed. For the rank that has chosen it.
  void pin(int slot, Purpose purpose) const;
  // Releases a pinned slot. For the keeper.
  void unpin(int slot) const;

  struct Whole {
    int slot = 0;
    int64_t step = 0;
    uint64_t bytes = 0;
    Purpose purpose = Purpose::kSnapshot;
  };
  // The checksums that the ranks have left with an image that is whole.
  std::vector<ByteSum> sums_of(const Whole& image) const;
  // The newest image that is whole; nothing if none is.
  std::optional<Whole> newest() const;
  // The oldest of those that are pinned and whole.
  std::optional<Whole> asked() const;

  // Waits until `condition`, of the slots, is true, and calls `on_progress` where writing has gone on meanwhile.
  // Returns false after `patience` seconds without progress.
  bool wait_until(const std::function<bool()>& condition, const std::function<void()>& on_progress,
                  double patience = std::numeric_limits<double>::infinity()) const;

  // Wakes who sleeps. sleep() returns at the next ring() after `seen` was header().bell, or after `ns`.
  void ring() const;
  void sleep(uint32_t seen, int64_t ns) const;

 private:
  SnapshotHeader::Slot& slot(int index) const { return header().slot.at(static_cast<size_t>(index)); }
  std::optional<Whole> whole(int index) const;

  Mapping mapping_;
};

}  // namespace lockstep::checkpoint
