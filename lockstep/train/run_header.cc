#include "lockstep/train/run_header.h"

#include <ATen/Context.h>

#include <algorithm>

#include "lockstep/base/env.h"
#include "lockstep/data/sampler.h"
#include "lockstep/train/device_input.h"
#include "lockstep/train/form.h"
#include "lockstep/train/header.h"
#include "lockstep/train/origin.h"

namespace lockstep::train {
namespace {

// Of a network in fp32 on a GPU. libtorch's defaults hold: cuDNN's convolutions round their operands to TF32, products
// of matrices don't.
std::string tf32_text(const Parts& parts) {
  if (parts.device.is_cpu() || parts.mixed->policy().casts()) return "";
  const auto& context = at::globalContext();
  return cat(context.allowTF32CuDNN(at::Float32Op::CONV) ? ", convolutions in TF32" : "",
             context.allowTF32CuBLAS() ? ", matrix products in TF32" : "");
}

// The header's words for a run's precision: the amp level, the dtype in which gradients are added, SyncBatchNorm.
std::string precision_of(const Parts& parts) {
  const parallel::ParallelOptions& options = parts.options.parallel;
  const bool narrow = options.comm_dtype == parallel::CommType::kBf16;
  return parts.mixed->policy().name() + tf32_text(parts) + (narrow ? ", gradients added in bfloat16" : "") +
         (options.sync_bn ? ", SyncBatchNorm" : "");
}

std::string input_text(const Parts& parts) {
  const int64_t in_step = std::min(parts.plan.global_batch(), parts.data.train->size());
  const int64_t rows = data::lane_range(in_step, parts.plan.lanes, 0).count;
  return text_of_input(parts.data.train->fields(),
                       rows * (parts.plan.lanes / parts.options.parallel.groups_of(parts.world->size())), parts.device,
                       kMostAhead, parts.decoder ? parts.decoder->text() : "");
}

// A preset, and the options that are not the usual ones: its own and others.
std::string chosen_text(const std::string& preset, const std::string& options) {
  return preset.empty() ? options : cat("--preset ", preset, options.empty() ? "" : " ", options);
}

}  // namespace

std::string header_of(const Parts& parts) {
  const auto size_of = [](const auto& split) { return split ? split->size() : 0; };
  const auto text_of = [](const auto& split) { return split ? split->description() : ""; };
  const RunRows rows(parts.options, *parts.recipe);
  const auto mixing = parts.recipe->batch_transform();
  int64_t parameters = 0;
  for (const auto& parameter : parts.model.module->parameters()) parameters += parameter.numel();
  return header({.program = parts.program,
                 .recipe = parts.recipe->name(),
                 .recipe_options = rows.recipe_text(),
                 .folder = parts.files.folder,
                 .libtorch = env("LOCKSTEP_LIBTORCH").value_or(""),
                 .device = parts.device_text,
                 .precision = precision_of(parts) + (parts.amp_why.empty() ? "" : cat(" (auto: ", parts.amp_why, ')')),
                 .ranks = parts.world->size(),
                 .backend = parts.world->communicator().backend(),
                 .bits = bits_text(parts.device, parts.options.deterministic, has_same_bits(parts)),
                 .sync_bn = parts.options.parallel.sync_bn,
                 .threads = static_cast<int>(parts.state.origin.number("threads")),
                 .snapshot_keeper = parts.world->place().launcher == "lockstep",
                 .parameters = parameters,
                 .network = parts.model.text,
                 .train_data = text_of(parts.data.train),
                 .test_data = text_of(parts.data.test),
                 .validation_data = text_of(parts.data.validation),
                 .mixing = mixing == nullptr ? "" : mixing->text(),
                 .input = input_text(parts),
                 .skip_bad = parts.options.data.skip_bad,
                 .skipped = std::ssize(parts.state.skipped),
                 .train_samples = size_of(parts.data.train),
                 .test_samples = size_of(parts.data.test),
                 .validation_samples = size_of(parts.data.validation),
                 .parallel = form_text(parts),
                 .sharding = parts.sharding,
                 .chosen = chosen_text(parts.options.preset, rows.chosen_text(parts.usual)),
                 .first_step = parts.state.step,
                 .keep = parts.options.keep,
                 .resumed_from = parts.resumed_from,
                 .forked = parts.forked,
                 .dropped = parts.dropped,
                 .changes = parts.changes,
                 .loaded = parts.loaded},
                parts.plan);
}

}  // namespace lockstep::train
