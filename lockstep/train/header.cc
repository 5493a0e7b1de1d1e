#include "lockstep/train/header.h"

#include <cstdio>

#include "lockstep/base/text.h"
#include "lockstep/config/values.h"

namespace lockstep::train {
namespace {

// 21430 -> "21,430"
std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string data_line(const char* label, const std::string& description, int64_t samples) {
  return samples == 0 ? "" : cat("  ", label, description, '\n');
}

// " = 0.1 × 4 (linear, global batch 256 ÷ 64)"
std::string scaling_text(const Plan& plan) {
  if (!plan.lr_scaling) return "";
  const LrScaling& scaling = *plan.lr_scaling;
  return cat(" = ", scaling.unscaled_lr, " × ", scaling.factor, " (", scaling.rule, ", global batch ",
             plan.global_batch(), " ÷ ", scaling.base_batch, "),");
}

// What a batch larger than the data becomes.
std::string whole_data_text(const HeaderFacts& facts, const Plan& plan) {
  if (facts.train_samples >= plan.global_batch()) return "";
  return cat("; a step has all ", facts.train_samples, " samples, for there are no more");
}

std::string schedule_text(const Plan& plan) {
  const char* unit = plan.steps_per_unit == 1 ? "step" : "epoch";
  return cat("lr ", plan.schedule.base_lr, scaling_text(plan), ' ', schedule::describe(plan.schedule, unit));
}

// When checkpoints are saved.
std::string saves_text(const Plan& plan) {
  if (plan.save_seconds > 0) return cat("every ", plan.save_seconds, " s");
  if (plan.save_every == 0) return "at the end";
  return plan.save_every == 1 ? "every step" : cat("every ", plan.save_every, " steps");
}

}  // namespace

std::string bits_text(c10::Device device, bool repeats, bool any_ranks) {
  if (!device.is_cpu() && !repeats) return "may differ from run to run; --deterministic on repeats them";
  if (!any_ranks) return "this world size only";
  return cat("the same at any number of ranks, for this build on this kind of ", device.is_cpu() ? "CPU" : "GPU");
}

std::string header(const HeaderFacts& facts, const Plan& plan) {
  std::string text = cat(facts.program, " train ", facts.recipe, facts.recipe_options.empty() ? "" : " ",
                         facts.recipe_options, " -> ", facts.folder, '\n');
  if (!facts.libtorch.empty()) text += cat("  libtorch    ", facts.libtorch, '\n');
  text += cat("  device      ", facts.device, ", precision ", facts.precision,
              plan.channels_last ? ", channels_last" : "", '\n');
  text +=
      cat("  ranks       ", facts.ranks, " (", facts.backend, "), ", facts.threads,
          facts.threads == 1 ? " thread" : " threads", " each, ", plan.lanes, plan.lanes == 1 ? " lane\n" : " lanes\n");
  if (!facts.parallel.empty()) text += cat("  parallel    ", facts.parallel, '\n');
  text += cat("  batch       ", plan.batch_size, " a lane, ", plan.global_batch(), " global",
              whole_data_text(facts, plan), '\n');
  if (facts.sync_bn) {
    const int own = plan.lanes / facts.ranks;
    text += cat("  sync-bn     statistics over all ", plan.lanes, " lanes",
                own > 1 ? cat("; ", own, " times the activations of a lane in memory") : "", '\n');
  }
  text += cat("  parameters  ", grouped(facts.parameters), '\n');
  if (!facts.network.empty()) text += cat("  network     ", facts.network, '\n');
  text += data_line("train       ", facts.train_data, facts.train_samples);
  if (!facts.mixing.empty()) text += cat("  mixing      ", facts.mixing, '\n');
  if (!facts.input.empty()) text += cat("  input       ", facts.input, '\n');
  text += data_line("validation  ", facts.validation_data, facts.validation_samples);
  text += data_line("test        ", facts.test_data, facts.test_samples);
  if (facts.skip_bad > 0) {
    text += cat("  skip-bad    up to ", facts.skip_bad,
                facts.skip_bad == 1 ? " sample that can't be read" : " samples that can't be read",
                facts.skipped > 0 ? cat("; ", facts.skipped, " so far") : "", '\n');
  }
  text += cat("  optimizer   ", plan.optimizer, ", ", schedule_text(plan), facts.sharding.empty() ? "" : ", ",
              facts.sharding, '\n');
  if (!facts.chosen.empty()) text += cat("  options     ", facts.chosen, '\n');
  text += cat("  steps       ", plan.total_steps, " (", plan.steps_per_epoch, " an epoch), from epoch ",
              plan.epoch_of(facts.first_step) + 1, " step ", facts.first_step + 1, '\n');
  text += cat("  checkpoints ", saves_text(plan), ", the last ", facts.keep, " and the best stay\n");
  if (!facts.loaded.empty()) text += cat("  weights     ", facts.loaded, '\n');
  if (!facts.resumed_from.empty()) {
    text += facts.forked ? cat("  forked      from ", facts.resumed_from, "; its run stays as it is\n")
                         : cat("  resumed     ", facts.resumed_from, '\n');
  }
  if (!facts.dropped.empty()) text += cat("  dropped     ", config::joined(facts.dropped, ", "), '\n');
  for (const auto& change : facts.changes) text += cat("  changed     ", change, '\n');
  text += cat("  bits        ", facts.bits, '\n');
  if (!facts.snapshot_keeper)
    text += "  launcher    not lockstep's: nothing outlives these processes but checkpoints\n";
  return text;
}

}  // namespace lockstep::train
