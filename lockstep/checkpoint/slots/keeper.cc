#include "lockstep/checkpoint/slots/keeper.h"

#include <unistd.h>

#include <cstring>
#include <system_error>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/exception_text.h"
#include "lockstep/base/lower_priority.h"
#include "lockstep/base/no_threads.h"
#include "lockstep/base/signals_blocked.h"
#include "lockstep/checkpoint/files/atomic_file.h"
#include "lockstep/checkpoint/files/byte_sums.h"
#include "lockstep/checkpoint/files/step_folder.h"
#include "lockstep/checkpoint/files/zip_layout.h"

namespace lockstep::checkpoint {
namespace {

constexpr int64_t kNapNs = 200'000'000;  // for a ring that was not heard, as its ringer died before it

void write_pages(const std::string& path, std::span<const char> pages, size_t bytes,
                 const std::function<void()>& on_progress) {
  write_atomically(path, pages, bytes, on_progress);
}

}  // namespace

// Shared with the thread, which may outlive its owner in a write that hangs.
struct Keeper::State {
  State(std::shared_ptr<Slots> given, Options chosen) : slots(std::move(given)), options(std::move(chosen)) {}

  std::shared_ptr<Slots> slots;
  Options options;
  std::atomic<bool> ends = false, writing = false, abandoned = false;

  StepFolder folder() const {
    if (!options.folder.empty()) return {options.folder, options.keep_last};
    const std::string told = slots->header().folder.get();
    if (told.empty()) throw BugError("ranks have left a checkpoint in memory, and not told where it is to be written");
    return {told, slots->header().keep_last.load()};
  }

  void run() {
    lower_priority();
    while (!ends.load()) {
      const uint32_t seen = slots->header().bell.load();
      writing.store(true);  // before the look, so that nobody takes what is found for done
      const auto asked = slots->asked();
      if (asked) save_asked(*asked);
      writing.store(false);
      if (!asked) slots->sleep(seen, kNapNs);
    }
  }

  void save_asked(const Slots::Whole& image) {
    SnapshotHeader& header = slots->header();
    const bool best = image.purpose == Purpose::kBest;
    const auto mark = static_cast<uint64_t>(image.step) + 1;
    const auto failed = [&](bool disk_full) {
      if (best) header.lost_best.store(mark);
      header.error.set(exception_text());
      header.disk_full.store(disk_full ? 1 : 0);
      header.failed_in_row.fetch_add(1);  // before the count by which who looks notices it
      header.failed.fetch_add(1);
    };
    try {
      const std::string path = save(image);
      header.failed_in_row.store(0);
      if (best) header.saved_best.store(mark);
      if (options.on_saved && !abandoned.load()) options.on_saved(path);
    } catch (const DiskFullError&) {
      failed(/*disk_full=*/true);
    } catch (...) {
      failed(/*disk_full=*/false);
    }
    header.ended.fetch_add(1);
    slots->unpin(image.slot);
    if (options.on_ended && !abandoned.load()) options.on_ended();
  }

  std::string save(const Slots::Whole& image) {
    if (options.check_folder) options.check_folder();
    const std::string path = folder().save(image.step, [&](const std::string& to) { write(to, image); });
    if (image.purpose == Purpose::kBest) folder().mark_best(image.step);
    return path;
  }

  void write(const std::string& path, const Slots::Whole& image) {
    constexpr size_t kPage = 4096;
    const auto on_progress = [this] { slots->header().progress.fetch_add(1); };
    const std::span<char> room = slots->room(image.slot);
    const ByteSums sums(slots->sums_of(image));  // before the directory, which may take their place
    const std::string rest = complete_archive(room.first(image.bytes), on_progress, sums);
    const size_t bytes = image.bytes + rest.size();
    if (bytes > room.size()) throw BugError("a checkpoint's image of ", human_bytes(bytes), " is too large for a slot");
    std::memcpy(room.data() + image.bytes, rest.data(), rest.size());
    options.write(path, room.first((bytes + kPage - 1) / kPage * kPage), bytes, on_progress);
  }
};

Keeper::Keeper(std::shared_ptr<Slots> slots, Options options) {
  if (!options.write) options.write = write_pages;
  state_ = std::make_shared<State>(std::move(slots), std::move(options));
  // Signals are for the owner's threads.
  const SignalsBlocked meanwhile;
  try {
    thread_ = std::thread([state = state_] { state->run(); });
  } catch (const std::system_error& error) {
    throw_no_threads(1, "to save checkpoints", error);
  }
}

Keeper::~Keeper() {
  constexpr double kPatience = 60;  // seconds
  if (!thread_.joinable()) return;
  state_->ends.store(true);
  state_->slots->ring();
  uint64_t last = 0;
  Stopwatch since_progress;
  while (state_->writing.load() && since_progress.seconds() < kPatience) {
    const uint64_t progress = state_->slots->header().progress.load();
    if (progress != std::exchange(last, progress)) since_progress.restart();
    usleep(1000);
  }
  if (state_->writing.load()) {
    state_->abandoned.store(true);  // what `on_saved` uses may go with the owner
    thread_.detach();
  } else {
    thread_.join();
  }
}

void Keeper::abandon() {
  state_->abandoned.store(true);
  state_->ends.store(true);
  thread_.detach();
}

bool Keeper::at_rest() const { return !state_->slots->asked() && !state_->writing.load(); }

std::optional<Keeper::Asked> Keeper::ask_newest() {
  const auto image = state_->slots->newest();
  if (!image) return std::nullopt;
  const StepFolder folder = state_->folder();
  const auto there = folder.list();
  if (!there.empty() && there.back().step >= image->step) {
    return Asked{there.back().step, folder.path_of(there.back().step), /*was_there=*/true};
  }
  state_->slots->pin(image->slot, Purpose::kSave);  // it is committed, so the thread finds it
  state_->slots->ring();
  return Asked{image->step, folder.path_of(image->step)};
}

}  // namespace lockstep::checkpoint
