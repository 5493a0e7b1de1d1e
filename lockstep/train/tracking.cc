#include "lockstep/train/tracking.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "lockstep/nn/predicted_classes.h"
#include "lockstep/optim/held_gradient.h"
#include "lockstep/track/jsonl.h"
#include "lockstep/track/tensors/mask_picture.h"
#include "lockstep/track/tensors/tensor_histogram.h"
#include "lockstep/train/evaluation_schedule.h"
#include "lockstep/train/origin.h"
#include "lockstep/train/setup.h"

namespace lockstep::train {
namespace {

constexpr int64_t kPictures = 4;  // of an evaluation

track::HyperParameter hyper_parameter(const config::RecordedOption& option) {
  const std::string& text = option.value;
  if (text == "true" || text == "false") return {option.name, text == "true"};
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (*end == '\0') return {option.name, number};
  return {option.name, text};
}

// The options that the run's bits depend on and that are set.
std::vector<track::HyperParameter> hyper_parameters(const Parts& parts) {
  std::vector<track::HyperParameter> all;
  for (const auto& option : parts.state.origin.options) {
    if (!option.value.empty()) all.push_back(hyper_parameter(option));
  }
  return all;
}

// The tags of the scalars by which runs are compared.
std::vector<std::string> result_tags(const Parts& parts) {
  std::vector<std::string> tags;
  for (const char* split : {"validation", "test"}) {
    if (std::string(split) == "validation" && parts.data.validation == nullptr) continue;
    tags.push_back(cat(split, "/loss"));
    if (parts.recipe->best_by() != "loss") tags.push_back(cat(split, '/', parts.recipe->best_by()));
  }
  return tags;
}

}  // namespace

std::unique_ptr<Tracking> Tracking::of(const Parts& parts, const Logger& log) {
  const bool tracks = parts.options.track != Tracked{};
  if (parts.world->rank() != 0 || parts.is_done) return nullptr;
  // Nobody could tell later which of their steps are still the run's.
  if (!parts.options.track.tensorboard && track::remove_event_files(parts.files.folder)) {
    log.warning(
        "the event files are removed, which would lack this start's steps; --track tensorboard makes them anew");
  }
  if (!tracks) return nullptr;
  return std::make_unique<Tracking>(parts, log);
}

Tracking::Tracking(const Parts& parts, const Logger& log) : parts_(parts), log_(log) {
  if (parts.options.track.csv) csv_.emplace(parts.files.metrics_csv(), parts.files.metrics());
  if (parts.options.track.tensorboard) begin_tensorboard();
}

void Tracking::begin_tensorboard() {
  const int64_t step = parts_.state.step;
  const bool has_history = track::has_event_files(parts_.files.folder);
  tensorboard_.emplace(parts_.files.folder, step + 1);
  if (!has_history) {  // of a fork, or of a run that was not tracked before
    track::for_each_record(parts_.files.metrics(),
                           [this](const track::Record& record) { tensorboard_->write(record); });
  }
  tensorboard_->begin(hyper_parameters(parts_), result_tags(parts_));
  tensorboard_->text("config", step, cat("```toml\n", RunRows(parts_.resolved, *parts_.recipe).to_toml(), "```\n"));
}

void Tracking::write(const track::Record& record) {
  if (csv_) csv_->write(record);
  if (tensorboard_) tensorboard_->write(record);
}

bool Tracking::histograms_due(int64_t step) const {
  if (!tensorboard_) return false;
  if (const auto every = parts_.options.histograms_every) return at_interval(step, *every);
  return EvaluationSchedule{.every = parts_.plan.eval_every, .total_steps = parts_.plan.total_steps}.due(step);
}

void Tracking::gradients(int64_t step) {
  if (!histograms_due(step)) return;
  const optim::UseHeldGradients reads;
  for (const auto& parameter : parts_.model.module->named_parameters()) {
    const at::Tensor gradient = parameter.value().grad();
    if (!gradient.defined()) continue;
    add_histogram("gradients/" + parameter.key(), step, gradient, 1 / optim::loss_scale_of(gradient));
  }
}

void Tracking::weights(int64_t step) {
  if (!histograms_due(step)) return;
  for (const auto& parameter : parts_.model.module->named_parameters()) {
    add_histogram("weights/" + parameter.key(), step, parameter.value(), 1);
  }
  for (const auto& [tag, histogram] : std::exchange(histograms_, {})) tensorboard_->histogram(tag, step, histogram);
  if (const int64_t count = std::exchange(left_out_now_, 0); count > 0) {
    tensorboard_->write({{"kind", "histograms"}, {"step", step}, {"left_out", count}});
  }
}

void Tracking::add_histogram(const std::string& tag, int64_t step, const at::Tensor& tensor, double factor) {
  if (tensor.numel() == 0) return;
  if (auto histogram = track::histogram_of(tensor, factor)) {
    histograms_.emplace_back(tag, *std::move(histogram));
    return;
  }
  ++left_out_now_;
  if (left_out_++ == 0) {
    log_.warning("step ", step, ": no histogram of ", tag,
                 ", in which a value is not finite (further ones are counted and told at the end)");
  }
}

void Tracking::observe(const data::Batch& batch, const at::Tensor& output) {
  if (!tensorboard_ || !parts_.recipe->makes_masks() || !pictures_.empty()) return;
  const at::Tensor &images = batch.data(), &masks = batch.target();
  const bool fits = output.dim() == 4 && images.dim() == 4 && masks.dim() == 3 &&
                    images.sizes().slice(2) == masks.sizes().slice(1) &&
                    images.sizes().slice(2) == output.sizes().slice(2);
  for (int64_t i = 0; fits && i < std::min(kPictures, batch.size()); ++i) {
    pictures_.push_back(track::mask_picture(images[i], masks[i], nn::predicted_classes(output[i], 0)));
  }
}

void Tracking::pictures(const std::string& split) {
  const auto kept = std::exchange(pictures_, {});
  for (size_t i = 0; i < kept.size(); ++i) {
    tensorboard_->picture(cat(split, "/masks/", i), parts_.state.step, kept[i]);
  }
}

void Tracking::end() {
  if (tensorboard_) tensorboard_->end();
  if (left_out_ > 1) log_.warning(left_out_, " histograms were left out, as values were not finite");
}

}  // namespace lockstep::train
