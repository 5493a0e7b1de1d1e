#include "lockstep/train/prepare_folder.h"

#include <utility>

#include "lockstep/checkpoint/checkpoint_store.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/train/data_list.h"
#include "lockstep/train/folder/text_file.h"

namespace lockstep::train {
namespace {

// A run that was extended and killed at its new end still has the results of its old one, which rank 0 keeps. A
// collective.
bool has_ended(const Parts& parts) {
  const bool at_end = parts.state.step >= parts.plan.total_steps || parts.stops_early();
  const bool has_results = at_end && steps_in(parts.files.final_json()) == parts.state.step;
  return comm::holds_on(parts.world->communicator(), 0, has_results);
}

// The run's configuration and lists, and a history that ends where the run goes on.
void prepare_files(Parts& parts, const std::optional<ResumedCheckpoint>& from) {
  if (from && !parts.forked) parts.warnings = set_aside(*from);
  const auto write_config = [&] {
    write_text(parts.files.config(), RunRows(parts.resolved, *parts.recipe).to_toml());
    write_or_remove(parts.files.data_list(), to_text(parts.files_of_data));
    write_or_remove(parts.files.data_scan(), parts.findings->text());
    write_or_remove(parts.files.skipped(), data::lines_of(parts.state.skipped));
  };
  Continued done;
  if (parts.forked) {
    write_config();  // first: a folder with a checkpoint says what it is
    done = take_over(parts.files, *from);
  } else {
    done = cut_back(parts.files, parts.state.step, parts.resumed_from);
    if (!parts.is_done) write_config();
  }
  parts.evaluated = std::move(done.evaluated);
  if (parts.options.overwrite) parts.dropped = std::move(done.dropped);
  checkpoint::CheckpointStore store(parts.files.checkpoints());
  const auto saved = store.list();
  const bool is_there = !saved.empty() && saved.back().step == parts.state.step;
  if (parts.state.is_best && is_there) store.mark_best(parts.state.step);  // a killed save may not have
}

}  // namespace

void prepare_folder(Parts& parts, const std::optional<ResumedCheckpoint>& from) {
  parts.is_done = has_ended(parts);
  if (parts.saves()) prepare_files(parts, from);
}

}  // namespace lockstep::train
