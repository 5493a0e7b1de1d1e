#include "lockstep/loop/background_saves.h"

#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "lockstep/base/board.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/fill_slot.h"
#include "lockstep/checkpoint/formats/pt_image.h"
#include "lockstep/checkpoint/slots/keeper.h"
#include "lockstep/checkpoint/slots/slots.h"
#include "lockstep/world/once.h"

namespace lockstep::loop {

using checkpoint::Purpose;
using checkpoint::Slots;

struct BackgroundSaves::Writer {
  Writer(BoardRank& rank, const checkpoint::CheckpointStore& store)
      : self(rank),
        slots(std::make_shared<Slots>(Slots::create(1).get())),
        keeper(slots, {.folder = store.folder(),
                       .keep_last = store.keep_last(),
                       .on_ended = [&rank] { rank.saving.fetch_sub(1); }}),
        direct(store.folder(), {.keep_last = store.keep_last()}) {}

  // Who waits for this rank waits for the disk, as long as that makes progress.
  bool wait_until(const std::function<bool()>& condition,
                  double patience = std::numeric_limits<double>::infinity()) const {
    const SavingOnBoard saving(self);
    return slots->wait_until(
        condition, [this] { self.beat(); }, patience);
  }

  void failed_with(const std::string& why, uint32_t in_row) const {
    if (in_row >= kMostFailures) throw IoError(why, "; ", in_row, " checkpoints in a row were not saved");
    log.warning("a checkpoint was not saved, the loop goes on: ", why);
  }

  // Tells of what has failed since the last look.
  void look() {
    const uint32_t failures = slots->header().failed.load();
    if (failures == std::exchange(failed, failures)) return;
    failed_with(slots->header().error.get(), slots->header().failed_in_row.load());
  }

  // There is room if there was for images as large. They grow when an optimizer gets its state.
  bool has_room(uint64_t file_bytes) {
    if (file_bytes <= room_for) return true;
    if (!Slots::have_room(file_bytes, log)) return false;
    room_for = file_bytes;
    return true;
  }

  void put(const checkpoint::Value& whole, int64_t step, bool best) {
    // A later one may be on its way to the disk.
    if (step < std::exchange(last_put, step)) wait_until([this] { return keeper.at_rest(); });
    direct.refuse_later(step);
    const checkpoint::PtImage image(whole);
    if (!has_room(image.file_bytes())) return write(whole, step, best);
    wait_until([this] { return slots->choose().has_value(); });
    look();
    const int slot = slots->choose().value();
    checkpoint::fill_slot(*slots, slot, image);
    self.saving.fetch_add(1);  // until the file is written, also where another rank fails meanwhile
    slots->pin(slot, best ? Purpose::kBest : Purpose::kSave);
    slots->end(slot, 0, step);
  }

  // Without a place in memory, and waited for.
  void write(const checkpoint::Value& whole, int64_t step, bool best) {
    wait_until([this] { return keeper.at_rest(); });
    const SavingOnBoard saving(self);
    try {
      direct.save(step, whole, [this] { self.beat(); });
      if (best) direct.mark_best(step);
      direct_failed_in_row = 0;
    } catch (const IoError& error) {
      direct_error = error.what();
      failed_with(direct_error, ++direct_failed_in_row);
    }
  }

  void wait() {
    wait_until([this] { return keeper.at_rest(); });
    if (slots->header().failed_in_row.load() > 0) throw IoError(slots->header().error.get());
    if (direct_failed_in_row > 0) throw IoError(direct_error);
    look();  // at those that a later one has followed
  }

  BoardRank& self;
  std::shared_ptr<Slots> slots;
  checkpoint::Keeper keeper;
  checkpoint::CheckpointStore direct;
  Logger log = Logger::from_environment("rank 0");
  int64_t last_put = 0;               // its step
  uint64_t room_for = 0;              // bytes of a file for two of which there was memory
  uint32_t failed = 0;                // of the keeper's saves that failed, those that look() has seen
  uint32_t direct_failed_in_row = 0;  // of those that were waited for
  std::string direct_error;           // of the last of them
};

BackgroundSaves::BackgroundSaves(World& world, const checkpoint::CheckpointStore& store) : world_(world) {
  once(world, OnceScope::kWorld, [&] { writer_ = std::make_unique<Writer>(world.self(), store); });
}

BackgroundSaves::~BackgroundSaves() {
  constexpr double kPatience = 60;  // seconds
  if (!writer_) return;
  const bool ended = writer_->wait_until([this] { return writer_->keeper.at_rest(); }, kPatience);
  const auto& header = writer_->slots->header();
  if (!ended) {
    writer_->log.warning("a checkpoint was not saved: the disk takes nothing");
    writer_->keeper.abandon();
  } else if (header.failed.load() != writer_->failed) {
    writer_->log.warning("a checkpoint was not saved: ", header.error.get());
  }
}

void BackgroundSaves::put(const checkpoint::Value& whole, int64_t step, bool best) {
  once(world_, OnceScope::kWorld, [&] { writer_->put(whole, step, best); });
}

void BackgroundSaves::wait() {
  once(world_, OnceScope::kWorld, [&] { writer_->wait(); });
}

}  // namespace lockstep::loop
