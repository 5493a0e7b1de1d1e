#include "lockstep/train/saver.h"

#include <ATen/ops/empty.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/lease.h"
#include "lockstep/checkpoint/fill_slot.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/parallel/sharded_optimizer.h"
#include "lockstep/train/evaluation_schedule.h"
#include "lockstep/train/optimizer_parts.h"
#include "lockstep/train/phase.h"

namespace lockstep::train {

using checkpoint::Purpose;

namespace {

constexpr int64_t kNoSlot = -1;

}  // namespace

Saver::Saver(const Parts& parts, Reporter& reporter, const Logger& log)
    : parts_(parts),
      reporter_(reporter),
      log_(log),
      store_(parts.files.checkpoints(), {.keep_last = parts.options.keep}),
      mode_(choose_mode()),
      first_step_(parts.state.step),
      has_updated_(parts.state.step > 0) {
  if (mode_ == Mode::kTogether && fills()) {
    slots_ = checkpoint::Slots::inherited();
    failed_ = slots_->header().failed.load();  // those of an earlier attempt are told already
    if (saves()) take_slots();
  }
  if (mode_ == Mode::kOwnThread && saves()) {
    const Descriptor memory = checkpoint::Slots::create(1);
    slots_ = std::make_shared<checkpoint::Slots>(memory.get());
    keeper_.emplace(slots_,
                    checkpoint::Keeper::Options{.folder = parts_.files.checkpoints(),
                                                .keep_last = parts_.options.keep,
                                                .check_folder = [this] { reporter_.check_folder(); },
                                                .on_saved = [this](const std::string& path) { reporter_.saved(path); },
                                                .on_ended = [this] { parts_.world->self().saving.fetch_sub(1); }});
  }
}

Saver::~Saver() = default;

Saver::Mode Saver::choose_mode() {
  const World& world = *parts_.world;
  if (!parts_.options.background_saves) return Mode::kWaited;
  if (world.place().local_size != world.size()) return choose_mode_of_nodes();
  if (!may_fill_slots()) return Mode::kOwnThread;
  saver_ = 0;
  return Mode::kTogether;
}

// The ranks of each node that saves have all of the state, unless they share the optimizer's with other nodes' ranks.
// A collective.
Saver::Mode Saver::choose_mode_of_nodes() {
  if (dynamic_cast<const parallel::ShardedOptimizer*>(parts_.optimizer.get()) != nullptr) return Mode::kOwnThread;
  const auto slots = checkpoint::Slots::inherited();
  const std::string launcher = slots ? cat(slots->header().id.load()) : "";  // of this node
  const auto launchers = comm::gather_texts(parts_.world->communicator(), launcher);
  for (const int saver : parts_.disks.savers) {
    if (!launcher.empty() && launchers[static_cast<size_t>(saver)] == launcher) saver_ = saver;
  }
  const bool can = fills() ? may_fill_slots() : !saves();
  if (comm::holds_on_all(parts_.world->communicator(), can)) return Mode::kTogether;
  saver_ = -1;
  return Mode::kOwnThread;
}

// Whether the launcher of this node writes what its ranks leave in its memory.
bool Saver::may_fill_slots() const {
  const auto slots = checkpoint::Slots::inherited();
  const auto ranks = static_cast<uint32_t>(parts_.world->place().local_size);
  return slots && slots->header().kept.load() != 0 && slots->header().ranks.load() == ranks && parts_.device.is_cpu();
}

// What another program of this launcher's command has left there is none of this run's. The ranks of this node fill a
// slot after prepare()'s collective.
void Saver::take_slots() {
  wait_for_disk([this] { return !any_pinned(); });
  slots_->begin_anew(parts_.world->place().local_size);
  const std::string folder = std::filesystem::absolute(parts_.files.checkpoints()).lexically_normal();
  slots_->tell_folder(folder, parts_.options.keep);
}

// Whether the launcher writes to the folder that this rank has told: it may see another disk at that path.
bool Saver::launcher_sees_folder() {
  using Seen = checkpoint::SnapshotHeader::Seen;
  constexpr double kPatience = 2;  // seconds
  if (mode_ != Mode::kTogether) return true;
  const auto is_known = [this] { return slots_->header().seen.load() != Seen::kNotYet; };
  for (const Stopwatch watch; !is_known() && watch.seconds() < kPatience;) usleep(1000);
  if (slots_->header().seen.load() == Seen::kYes) return true;
  log_.warning("checkpoints are waited for: the launcher does not see ", parts_.files.checkpoints(),
               " as this rank does");
  return false;
}

checkpoint::Value Saver::whole_state() const {
  return to_checkpoint(parts_.state, *parts_.model.module, *parts_.optimizer, parts_.mixed->scaler());
}

checkpoint::Value Saver::own_state(std::vector<checkpoint::OwnSlice>& slices) const {
  const auto* sharded = dynamic_cast<const parallel::ShardedOptimizer*>(parts_.optimizer.get());
  if (sharded == nullptr) return whole_state();
  parallel::ShardedOptimizer::OwnParts own = sharded->own_parts();
  for (const auto& slice : own.slices) slices.push_back({slice.whole, slice.own, slice.first});
  const OptimizerParts parts{std::move(own.state), std::move(own.masters), std::move(own.averages)};
  return to_checkpoint(parts_.state, *parts_.model.module, *parts_.optimizer, parts, parts_.mixed->scaler());
}

void Saver::prepare() {
  if (prepared_ && (*prepared_ || !has_updated_)) return;
  prepared_ = has_updated_;
  if (mode_ == Mode::kWaited || (mode_ == Mode::kOwnThread && parts_.world->size() > 1)) return;
  std::vector<checkpoint::OwnSlice> slices;
  const uint64_t bytes = checkpoint::PtImage(own_state(slices)).file_bytes();
  // The last save, and that of a stop, gather what the ranks share on the one that writes.
  const uint64_t gathered = slices.empty() ? 0 : bytes, resident = slots_ ? slots_->resident(bytes) : 0;
  const bool can =
      !saves() || (launcher_sees_folder() && checkpoint::Slots::have_room(bytes, log_, resident, gathered));
  if (!comm::holds_on_all(parts_.world->communicator(), can)) {
    mode_ = Mode::kWaited;
    return;
  }
  if (!slots_) return;
  // Each rank begins at its share, so that they don't meet, and maps the others' pages last.
  constexpr size_t kPage = 4096;
  const auto ranks = static_cast<size_t>(parts_.world->place().local_size);
  const auto rank = static_cast<size_t>(parts_.world->local_rank());
  const size_t from = bytes / ranks * rank / kPage * kPage;
  std::vector<std::span<char>> ranges;
  for (int slot = 0; slot < checkpoint::Slots::kCount; ++slot) {
    const std::span<char> room = slots_->room(slot);
    ranges.push_back(room.subspan(from, std::min(room.size() - from, bytes - from)));
    ranges.push_back(room.first(from));
  }
  populator_.emplace(std::move(ranges));
}

void Saver::save(bool best) {
  prepare();
  asked_step_ = parts_.state.step;
  if (saves()) reporter_.check_folder();
  if (mode_ != Mode::kWaited) return put(best ? Purpose::kBest : Purpose::kSave);
  const checkpoint::Value state = whole_state();
  if (!saves()) return;
  wait_for_disk([this] { return !any_pinned(); });  // of what was asked for before the saves were waited for
  write(state, best, /*must=*/false);
}

void Saver::save_and_wait(bool best) {
  waited_step_ = parts_.state.step;
  const checkpoint::Value state = whole_state();
  if (!saves()) return;
  reporter_.check_folder();
  wait_for_disk([this] { return !any_pinned(); });
  if (has_new_failure()) log_.warning("a checkpoint was not saved: ", slots_->header().error.get());
  write(state, best, /*must=*/true);
}

void Saver::write(const checkpoint::Value& state, bool best, bool must) {
  const int64_t step = parts_.state.step;
  const SavingOnBoard saving(parts_.world->self());
  const Phase phase(parts_.world->self(), cat("saving the checkpoint of step ", step));
  try {
    const std::string path = store_.save(step, state, [this] { parts_.world->self().beat(); });
    if (best) store_.mark_best(step);
    if (best) waited_best_.saved = step;
    reporter_.saved(path);
    waited_failed_ = 0;
  } catch (const IoError& error) {
    if (must) throw;
    if (best) waited_best_.lost = step;
    failed(error.what(), ++waited_failed_);
  }
}

void Saver::failed(const std::string& why, uint32_t in_row) {
  if (in_row >= kMostFailures) throw IoError(why, "; ", in_row, " checkpoints in a row were not saved");
  log_.warning("a checkpoint was not saved, training goes on: ", why);
}

// Elsewhere all of the state would be gathered for each.
int64_t Saver::snapshot_every() const {
  constexpr int64_t kUsual = 50;
  return parts_.options.snapshot_every.value_or(mode_ == Mode::kTogether ? kUsual : 0);
}

bool Saver::snapshot_due() const { return mode_ != Mode::kWaited && at_interval(parts_.state.step, snapshot_every()); }

void Saver::snapshot() {
  prepare();
  if (mode_ != Mode::kWaited) put(Purpose::kSnapshot);
}

void Saver::save_interrupted(const std::string& file) {
  prepare();
  // A second image of one step would need a collective before it (slots.h), and have the same bytes.
  if (mode_ == Mode::kTogether && put_step_ != parts_.state.step) put(Purpose::kSnapshot);
  const checkpoint::Value state = whole_state();
  if (!saves()) return;
  reporter_.check_folder();
  wait_for_disk([this] { return !any_pinned(); });
  const SavingOnBoard saving(parts_.world->self());
  const Phase phase(parts_.world->self(), "saving " + file);
  checkpoint::write_pt(state, file, [this] { parts_.world->self().beat(); });
  reporter_.saved(file);
}

bool Saver::has_saved() {
  if (waited_step_ == parts_.state.step) return true;
  if (asked_step_ != parts_.state.step) return false;
  bool failed = false;
  if (saves()) {
    wait_for_disk([this] { return !any_pinned(); });
    failed = waited_failed_ > 0 || (slots_ && slots_->header().failed_in_row.load() > 0);
  }
  return comm::holds_on_all(parts_.world->communicator(), !failed);
}

bool Saver::began_with_file() {
  if (parts_.state.step != first_step_ || parts_.resumed_from.empty() || parts_.forked) return false;
  const auto is_it = [this](const auto& saved) { return saved.step == first_step_; };
  return comm::holds_on_all(parts_.world->communicator(), !saves() || std::ranges::any_of(store_.list(), is_it));
}

void Saver::look() {
  if (has_new_failure()) failed(slots_->header().error.get(), slots_->header().failed_in_row.load());
}

// Whether a checkpoint has failed to reach the disk that nobody has been told of.
bool Saver::has_new_failure() {
  if (!saves() || !slots_) return false;
  const uint32_t failures = slots_->header().failed.load();
  return failures != std::exchange(failed_, failures);
}

BestSaves Saver::best_saves() {
  const at::Tensor told = at::empty({2}, at::kLong);
  auto* steps = told.mutable_data_ptr<int64_t>();
  const int first = parts_.disks.savers.front();
  if (parts_.world->rank() == first) {
    BestSaves newest = waited_best_;
    if (slots_) {
      // In this order: a best that is saved meanwhile must not be taken for one before the lost one.
      newest.lost = std::max(newest.lost, static_cast<int64_t>(slots_->header().lost_best.load()) - 1);
      newest.saved = std::max(newest.saved, static_cast<int64_t>(slots_->header().saved_best.load()) - 1);
    }
    steps[0] = newest.saved;
    steps[1] = newest.lost;
  }
  parts_.world->communicator().broadcast(told, first);
  return {steps[0], steps[1]};
}

void Saver::rescue() noexcept {
  if (!keeper_) return;
  const SavingOnBoard saving(parts_.world->self());  // a launcher that has seen another rank's end waits for this one
  try {
    const auto at_rest = [this] { return keeper_->at_rest(); };
    wait_for_disk(at_rest);
    const uint32_t failed = slots_->header().failed_in_row.load();
    const auto asked = snapshot_every() > 0 ? keeper_->ask_newest() : std::nullopt;
    if (!asked || asked->was_there) return;
    wait_for_disk(at_rest);
    if (slots_->header().failed_in_row.load() > failed) throw IoError(slots_->header().error.get());
    log_.warning("saved: snapshot of step ", asked->step, ", ", asked->path);
  } catch (const std::exception& error) {
    log_.warning("the newest snapshot was not saved: ", error.what());
  }
}

void Saver::put(Purpose purpose) {
  const int64_t step = parts_.state.step;
  const Phase phase(parts_.world->self(), cat("copying the state of step ", step));
  if (mode_ == Mode::kTogether) {
    put_together(purpose);
  } else {
    put_alone(purpose);
  }
}

// A saver's choice of the slot reaches the ranks of its node together with its layout, which must be theirs.
void Saver::put_together(Purpose purpose) {
  std::vector<checkpoint::OwnSlice> slices;
  const checkpoint::Value state = own_state(slices);
  const checkpoint::PtImage image(state);
  const auto hash = static_cast<int64_t>(image.layout_hash());
  const at::Tensor own = at::empty({2}, at::kLong);
  own.mutable_data_ptr<int64_t>()[0] = saves() ? slot_for(purpose).value_or(kNoSlot) : kNoSlot;
  own.mutable_data_ptr<int64_t>()[1] = hash;
  const at::Tensor all = parts_.world->communicator().all_gather(own);
  const auto* const told = all.const_data_ptr<int64_t>();
  for (int rank = 0; rank < parts_.world->size(); ++rank) {
    if (told[2 * rank + 1] != hash) throw BugError("ranks lay out a checkpoint differently");
    if (told[2 * rank] != kNoSlot) put_step_ = parts_.state.step;
  }
  if (!fills() || told[2 * saver_] == kNoSlot) return;
  const int slot = static_cast<int>(told[2 * saver_]);
  const int rank = parts_.world->local_rank();
  checkpoint::fill_slot(*slots_, slot, image, slices, parts_.world->place().local_size, rank);
  if (saves() && purpose != Purpose::kSnapshot) slots_->pin(slot, purpose);
  slots_->end(slot, rank, parts_.state.step);
}

void Saver::put_alone(Purpose purpose) {
  const checkpoint::Value state = whole_state();
  if (!saves()) return;
  const checkpoint::PtImage image(state);
  if (!fits_) fits_ = populator_.has_value() || checkpoint::Slots::have_room(image.file_bytes(), log_);
  if (!*fits_) {
    if (purpose != Purpose::kSnapshot) write(state, purpose == Purpose::kBest, /*must=*/false);
    return;
  }
  const auto slot = slot_for(purpose);
  if (!slot) return;
  checkpoint::fill_slot(*slots_, *slot, image);
  if (purpose != Purpose::kSnapshot) {
    parts_.world->self().saving.fetch_add(1);  // until the file is written, also where another rank fails meanwhile
    slots_->pin(*slot, purpose);
  }
  slots_->end(*slot, 0, parts_.state.step);
}

// A save waits for a slot. A snapshot does not, and there are half as many while the disk is at work.
std::optional<int> Saver::slot_for(Purpose purpose) {
  if (purpose != Purpose::kSnapshot) {
    wait_for_disk([this] { return slots_->choose().has_value(); });
    look();
    return slots_->choose();
  }
  const bool every_other = snapshot_every() > 0 && parts_.state.step / snapshot_every() % 2 != 0;
  if (every_other && any_pinned()) return std::nullopt;
  return slots_->choose();
}

bool Saver::any_pinned() const {
  if (!slots_) return false;
  for (const auto& slot : slots_->header().slot) {
    if (slot.pinned.load() != 0) return true;
  }
  return false;
}

// Who waits for this rank waits for the disk, as long as that makes progress. Without a lease nothing is written any
// more: a launcher that stands still has lost it, and this rank must not hold the run's folder for it.
void Saver::wait_for_disk(const std::function<bool()>& condition) {
  if (condition()) return;
  const Phase phase(parts_.world->self(), "saving: the disk has not taken the last checkpoints yet");
  const auto is_over = [&] {
    if (condition()) return true;
    check_lease(parts_.files.checkpoints());
    return false;
  };
  slots_->wait_until(is_over, [this] { parts_.world->self().beat(); });
}

}  // namespace lockstep::train
