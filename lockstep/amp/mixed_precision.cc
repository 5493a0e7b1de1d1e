#include "lockstep/amp/mixed_precision.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "lockstep/amp/cast_model.h"
#include "lockstep/base/error.h"

namespace lockstep::amp {
namespace {

constexpr const char* kNoGradients =
    "amp: step() without gradients: zero_grad() has come between run() and step(); call it after the step";

const Options& checked(const Options& options) {
  if (options.num_losses < 1) throw ConfigError("amp: num_losses ", options.num_losses, ": expected 1 or more");
  return options;
}

}  // namespace

MixedPrecision::MixedPrecision(const std::vector<torch::nn::Module*>& models,
                               const std::vector<optim::OptimizerRef>& optimizers, const Options& options)
    : options_(checked(options)),
      policy_(make_policy(options)),
      device_(check_models(models)),
      initialized_(models, this),
      scalers_(static_cast<size_t>(options.num_losses), LossScaler(scaler_options(options))),
      judged_(static_cast<size_t>(options.num_losses)) {
  check_device(device_, policy_);
  for (const auto& optimizer : optimizers) optim::check_listed_once(optimizer);
  check_optimizers(optimizers, models, policy_);
  const ExactWeights exact = cast_models(models, policy_);
  for (const auto& optimizer : optimizers) optimizers_.emplace_back(optimizer, policy_, exact);
  left_.resize(optimizers_.size());
}

MixedPrecision::~MixedPrecision() = default;

const MixedPrecision* MixedPrecision::find_for(const at::Tensor& parameter) {
  return InitializedModels::owner_of(parameter);
}

at::Tensor MixedPrecision::cast_output(const at::Tensor& output) const {
  if (!output.is_floating_point()) return output;
  if (options_.cast_model_outputs) return output.to(*options_.cast_model_outputs);
  return policy_.casts() ? output.to(at::kFloat) : output;
}

at::Tensor MixedPrecision::cast_input(const at::Tensor& input) const {
  return policy_.cast_model && input.is_floating_point() ? input.to(policy_.dtype) : input;
}

// The scale may have changed since the gradients were computed, by the step of another result that was there, too.
void MixedPrecision::check_scale(const FoldedGradients& gradients, int loss_id) const {
  const double now = loss_scale(loss_id), before = judged_[static_cast<size_t>(loss_id)].scale;
  if (gradients.loss_scale != now && gradients.loss_scale != before) {
    throw ConfigError("amp: the gradients are those of a loss times ", gradients.loss_scale, ", and the loss scale is ",
                      now, "; step each result of run() before the next but one, and give this to run: run(…, mixed)");
  }
  if (gradients.loss_id == FoldedGradients::kNoLoss || gradients.loss_id == loss_id) return;
  throw ConfigError("amp: a result of loss ", gradients.loss_id, " is given as one of loss ", loss_id,
                    ", whose scale it would change; give step() and unscale() the loss_id that run() had");
}

std::optional<bool> MixedPrecision::Judged::verdict_on(const FoldedGradients& gradients) const {
  const auto found = std::ranges::find(verdicts, gradients.run, &std::pair<uint64_t, bool>::first);
  if (gradients.run == 0 || found == verdicts.end()) return std::nullopt;
  return found->second;
}

void MixedPrecision::Judged::add(uint64_t run, bool skipped) {
  if (run == 0) return;
  verdicts.emplace_back(run, skipped);
  if (verdicts.size() > kMost) verdicts.pop_front();
}

// The marks of the present gradients of an optimizer's weights, whichever networks they are of.
GradientMarks MixedPrecision::marks_of(const optim::OptimizerRef& optimizer) {
  Left& left = left_[index_of(optimizer)];
  std::vector<at::Tensor> weights = find(optimizer).weights();
  const auto same = [](const at::Tensor& a, const at::Tensor& b) { return a.is_same(b); };
  if (!left.weights || !std::ranges::equal(left.weights->all(), weights, same)) {
    left.weights = std::make_shared<MarkedWeights>(std::move(weights));
  }
  return GradientMarks({left.weights});
}

// The result as the present gradients would have it. They may have changed since the run, by a clip of one's own or a
// later run.
FoldedGradients MixedPrecision::as_they_are(const FoldedGradients& result) const {
  const auto unscaled = [this](const at::Tensor& weight) {
    return std::ranges::any_of(left_,
                               [&](const Left& left) { return left.by_unscale && left.by_unscale->is_marked(weight); });
  };
  if (result.unscaled || !result.marks || !result.marks->have_changed(unscaled)) return result;
  if (result.coverage == Coverage::kMore) {
    throw ConfigError(
        "amp: gradients have changed since the run, and their norm and verdict are those of all ranks together; step "
        "by the result of the last run, and clip by step()'s max_norm");
  }
  FoldedGradients now = result;
  now.square_sum = result.marks->square_sum(result.loss_scale);
  now.gradients = result.marks->gradients();
  now.overflow.reset();
  if (now.square_sum == 0 && result.square_sum != 0) throw ConfigError(kNoGradients);
  return now;
}

// A result steps each optimizer once, of the networks that were run, and with the gradients of that run or later ones.
void MixedPrecision::check_step(const std::vector<optim::OptimizerRef>& optimizers,
                                const FoldedGradients& gradients) const {
  std::vector<size_t> places;
  for (const auto& each : optimizers) {
    const size_t place = index_of(each);
    if (std::ranges::find(places, place) != places.end()) {
      throw ConfigError("amp: one optimizer twice in a list; each is stepped once");
    }
    places.push_back(place);
    if (!gradients.unscaled) optimizers_[place].check_scaled();
    if (gradients.marks) check_gradients(each, *gradients.marks);
    if (!gradients.passed_by) continue;
    const std::vector<at::Tensor> weights = find(each).weights();
    if (std::ranges::any_of(weights, [&](const at::Tensor& weight) {
          return gradients.passed_by->contains(weight.unsafeGetTensorImpl());
        })) {
      throw ConfigError(
          "amp: step() of an optimizer that has weights of another wrapped network, which the loss reaches and whose "
          "gradients were not kept; run the networks together (DistributedDataParallel::run_together), or give each an "
          "optimizer of its own");
    }
  }
}

void MixedPrecision::check_gradients(const optim::OptimizerRef& optimizer, const GradientMarks& marks) const {
  const auto& stepped = left_[index_of(optimizer)].by_step;
  bool is_known = false, has_any = false, has_others = false, is_gone = false, has_stepped = true;
  for (const at::Tensor& weight : find(optimizer).weights()) {
    const auto found = marks.look_at(weight);
    is_known |= found != GradientMarks::Found::kUnknown;
    is_gone |= found == GradientMarks::Found::kGone;
    if (!weight.grad().defined()) continue;
    has_any = true;
    has_others |= found == GradientMarks::Found::kUnknown;
    has_stepped = has_stepped && stepped && stepped->is_marked(weight);
  }
  if (!is_known) {
    throw ConfigError("amp: step() by a result of other networks; the optimizer has none of the weights that were run");
  }
  if (has_any && has_stepped) {
    throw ConfigError("amp: step() a second time by the same gradients; a run() before it gives others");
  }
  if (has_others) {
    throw ConfigError(
        "amp: step() by a result that is not of all of the optimizer's weights that have gradients; run their networks "
        "together (DistributedDataParallel::run_together), or give each an optimizer of its own");
  }
  if (is_gone && !has_any) throw ConfigError(kNoGradients);
}

// The verdict and the norm are those of the result's first step, which other optimizers took.
void MixedPrecision::check_unjudged(const optim::OptimizerRef& optimizer, const FoldedGradients& gradients,
                                    const StepOptions& options, bool skipped) const {
  const MixedOptimizer& mixed = find(optimizer);
  const std::vector<at::Tensor> weights = mixed.weights();
  const bool changed = gradients.marks && std::ranges::any_of(weights, [&](const at::Tensor& weight) {
                         return gradients.marks->look_at(weight) == GradientMarks::Found::kChanged;
                       });
  if (!changed) return;
  if (options.max_norm > 0) {
    throw ConfigError(
        "amp: gradients have changed since the result's first step, and the norm that they are clipped by "
        "is from before; change them before that");
  }
  const bool in_masters = gradients.unscaled && mixed.copies_gradients();
  if (!skipped &&
      !std::isfinite(square_sum_of_gradients(in_masters ? mixed.stepped() : weights, gradients.loss_scale))) {
    throw ConfigError(
        "amp: gradients have changed since the result's first step, and are not finite now; step by the result of the "
        "run that has changed them");
  }
}

// Whether the updates can be queued before the device has computed what the verdict needs: nothing in them depends on
// it but whether they are skipped, which the device decides by itself.
bool MixedPrecision::goes_ahead(const std::vector<optim::OptimizerRef>& optimizers, const FoldedGradients& gradients,
                                const StepOptions& options, bool may_skip) {
  if (gradients.square_sum.is_there() || gradients.unscaled || options.max_norm > 0) return false;
  if (may_skip && !gradients.overflow.defined()) return false;
  return std::ranges::all_of(optimizers, [&](const auto& each) { return find(each).takes_overflow(); });
}

StepReport MixedPrecision::step(const std::vector<optim::OptimizerRef>& optimizers, const FoldedGradients& result,
                                const StepOptions& options, int loss_id) {
  LossScaler& of = scaler(loss_id);
  check_scale(result, loss_id);
  if (result.unscaled && options.max_norm > 0) {
    throw ConfigError("amp: max_norm after unscale(), where the norm may have changed; clip by optim::clip_grad_norm");
  }
  if (result.coverage == Coverage::kLess && (options.max_norm > 0 || of.enabled())) {
    throw ConfigError(
        "amp: weights are divided among ranks, each of which knows its own part's norm and overflow alone; use bf16, "
        "without max_norm, and clip by tensor::gradient_square_sum() before");
  }
  Judged& judged = judged_[static_cast<size_t>(loss_id)];
  const std::optional<bool> known = judged.verdict_on(result);
  const bool again = known.has_value();
  check_step(optimizers, result);
  for (const auto& each : optimizers) {
    if (again) check_unjudged(each, result, options, *known);
  }
  const FoldedGradients gradients = again ? result : as_they_are(result);
  if (!again && gradients.loss_scale == of.scale()) judged.scale = of.scale();
  const bool ahead = !again && goes_ahead(optimizers, gradients, options, of.enabled());
  for (size_t i = 0; ahead && i < optimizers.size(); ++i) {
    find(optimizers[i])
        .take_and_update({.grad_multiplier = 1 / gradients.loss_scale,
                          .clip_value = options.max_value,
                          .loss_scale = gradients.loss_scale,
                          .overflow = of.enabled() ? gradients.overflow : at::Tensor()});
    left_[index_of(optimizers[i])].by_step = marks_of(optimizers[i]);
  }
  const Verdict verdict = judge(of, gradients, options, known);
  if (!again) judged.add(gradients.run, verdict.report.skipped);
  for (const auto& optimizer : optimizers) {
    MixedOptimizer& mixed = find(optimizer);
    if (ahead) {
      mixed.end_update(verdict.report.skipped);
      continue;
    }
    if (verdict.report.skipped) {
      mixed.skip();
    } else {
      update_one(mixed, gradients, verdict.update);
    }
    left_[index_of(optimizer)].by_step = marks_of(optimizer);  // also where the next one's update throws
  }
  return verdict.report;
}

void MixedPrecision::update_one(MixedOptimizer& mixed, const FoldedGradients& gradients, optim::Update update) {
  // LAMB wants the norm of its own gradients.
  const bool has_all = mixed.is_fused() && mixed.gradients() == gradients.gradients;
  if (!has_all || gradients.unscaled) update.grad_norm = std::numeric_limits<double>::quiet_NaN();
  if (gradients.unscaled) {
    mixed.update(update);
  } else {
    mixed.take_and_update(update);
  }
}

FoldedGradients MixedPrecision::unscale(const std::vector<optim::OptimizerRef>& optimizers,
                                        const FoldedGradients& gradients, int loss_id) {
  check_scale(gradients, loss_id);
  if (gradients.coverage == Coverage::kMore) {
    throw ConfigError(
        "amp: unscale() where each rank has some gradients alone (a pipeline's stage, a parameter server), after which "
        "nobody knows the norm of all; clip by step()'s max_norm, or without a loss scale by "
        "optim::clip_factor(std::sqrt(result.square_sum), …)");
  }
  const bool again = judged_[static_cast<size_t>(loss_id)].verdict_on(gradients).has_value();
  check_step(optimizers, gradients);
  FoldedGradients unscaled = again ? gradients : as_they_are(gradients);
  for (const auto& optimizer : optimizers) {
    find(optimizer).unscale(gradients.loss_scale);
    left_[index_of(optimizer)].by_unscale = marks_of(optimizer);
  }
  unscaled.unscaled = true;
  return unscaled;
}

const LossScaler& MixedPrecision::scaler(int loss_id) const {
  if (loss_id < 0 || loss_id >= options_.num_losses) {
    throw ConfigError("amp: loss_id ", loss_id, ": num_losses is ", options_.num_losses);
  }
  return scalers_[static_cast<size_t>(loss_id)];
}

LossScaler& MixedPrecision::scaler(int loss_id) {
  return const_cast<LossScaler&>(std::as_const(*this).scaler(loss_id));
}

bool MixedPrecision::has_scale(double loss_scale) const {
  return std::any_of(scalers_.begin(), scalers_.end(),
                     [&](const LossScaler& scaler) { return scaler.scale() == loss_scale; });
}

std::vector<at::Tensor> MixedPrecision::masters_of(std::span<const at::Tensor> parameters) const {
  std::unordered_map<const c10::TensorImpl*, at::Tensor> by_weight;
  for (const auto& optimizer : optimizers_) {
    optimizer.for_each_master([&](const at::Tensor& weight, const at::Tensor& master) {
      by_weight.emplace(weight.unsafeGetTensorImpl(), master);
    });
  }
  std::vector<at::Tensor> masters;
  for (const auto& parameter : parameters) {
    const auto found = by_weight.find(parameter.unsafeGetTensorImpl());
    if (found != by_weight.end()) masters.push_back(found->second);
  }
  return masters;
}

MixedPrecision::State MixedPrecision::state_dict() const {
  State state;
  for (int i = 0; i < num_losses(); ++i) state[cat("loss_scaler", i)] = full_state(scaler(i));
  state["loss_scaler0"]["opt_level"] = static_cast<double>(policy_.level);
  state["loss_scaler0"]["half"] = policy_.dtype == at::kHalf ? 1 : 0;
  return state;
}

void MixedPrecision::load_state_dict(const State& state) {
  const auto first = state.find("loss_scaler0");
  const auto saved = [&](const char* key, double usual) {
    return first != state.end() && first->second.contains(key) ? first->second.at(key) : usual;
  };
  const double level = saved("opt_level", static_cast<double>(policy_.level));
  if (level != static_cast<double>(policy_.level)) {
    throw ConfigError("amp: a state of level O", level, ", this is ", name_of(policy_.level),
                      "; initialize at that level, or load the model's state alone");
  }
  const bool half = policy_.dtype == at::kHalf, saved_half = saved("half", half) != 0;
  if (policy_.casts() && saved_half != half) {
    throw ConfigError("amp: a state of ", saved_half ? "fp16" : "bf16",
                      ", this is the other; initialize with that dtype, or load the model's state alone");
  }
  const auto scalers = std::count_if(state.begin(), state.end(),
                                     [](const auto& entry) { return entry.first.starts_with("loss_scaler"); });
  if (scalers != num_losses()) {
    throw ConfigError("amp: a state of ", scalers, " losses, this has num_losses ", num_losses());
  }
  std::vector<LossScaler> loaded;
  for (int i = 0; i < num_losses(); ++i) {
    const auto found = state.find(cat("loss_scaler", i));
    if (found == state.end()) throw ConfigError("amp: a state without loss_scaler", i);
    load_state(loaded.emplace_back(scaler(i)), found->second);
  }
  scalers_ = std::move(loaded);
  judged_.assign(scalers_.size(), {});
}

void MixedPrecision::add_libtorchs(std::vector<optim::OptimizerRef>& to) const {
  for (const auto& each : optimizers_) {
    if (!each.is_fused()) to.push_back(each.optimizer());
  }
}

void MixedPrecision::hold_masters() const {
  for (const auto& optimizer : optimizers_) optimizer.hold_masters();
}

// A step of the optimizer by itself, after its zero_grad(), would leave the model as it is. Lanes and replicas have
// forward passes at once.
void MixedPrecision::hold_masters_in_training() const {
  static std::mutex mutex;
  if (!policy_.master_weights || !c10::GradMode::is_enabled()) return;
  const std::scoped_lock lock(mutex);
  hold_masters();
}

bool MixedPrecision::keeps_masters_of(const optim::OptimizerRef& optimizer) const {
  return policy_.master_weights && std::any_of(optimizers_.begin(), optimizers_.end(),
                                               [&](const MixedOptimizer& of) { return of.optimizer() == optimizer; });
}

size_t MixedPrecision::index_of(const optim::OptimizerRef& optimizer) const {
  const auto found = std::find_if(optimizers_.begin(), optimizers_.end(),
                                  [&](const MixedOptimizer& of) { return of.optimizer() == optimizer; });
  if (found == optimizers_.end()) throw ConfigError("amp: an optimizer that was not given with the models");
  return static_cast<size_t>(found - optimizers_.begin());
}

MastersByWeight MixedPrecision::masters_by_weight() const {
  MastersByWeight all;
  for (const auto& optimizer : optimizers_) all.merge(optimizer.masters_by_weight());
  return all;
}

void MixedPrecision::load_masters_by_weight(const MastersByWeight& values) {
  for (auto& optimizer : optimizers_) optimizer.load_masters_by_weight(values);
}

}  // namespace lockstep::amp
