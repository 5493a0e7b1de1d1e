#include "lockstep/loop/schedule_values.h"

#include "lockstep/base/text.h"

namespace lockstep::loop {
namespace {

using checkpoint::Dict;
using checkpoint::List;
using checkpoint::Value;
using namespace schedule;

template <typename T>
Value value_of(const std::optional<T>& number) {
  return number ? Value(*number) : Value();
}

Dict shape_values(const ConstantLr&) { return {{"shape", "constant"}}; }
Dict shape_values(const StepLr& o) { return {{"shape", "step"}, {"step_size", o.step_size}, {"gamma", o.gamma}}; }
Dict shape_values(const MultiStepLr& o) {
  return {{"shape", "multistep"}, {"milestones", List(o.milestones.begin(), o.milestones.end())}, {"gamma", o.gamma}};
}
Dict shape_values(const ExponentialLr& o) { return {{"shape", "exponential"}, {"gamma", o.gamma}}; }
Dict shape_values(const CosineLr& o) { return {{"shape", "cosine"}, {"t_max", o.t_max}}; }
Dict shape_values(const CosineRestartsLr& o) {
  return {{"shape", "cosine-restarts"}, {"t_0", o.t_0}, {"t_mult", o.t_mult}};
}
Dict shape_values(const OneCycleLr& o) {
  Dict values{{"shape", "onecycle"},
              {"max_lr", o.max_lr},
              {"total_steps", o.total_steps},
              {"pct_start", o.pct_start},
              {"div_factor", o.div_factor},
              {"final_div_factor", o.final_div_factor},
              {"anneal", o.anneal == Anneal::kCos ? "cos" : "linear"},
              {"three_phase", o.three_phase},
              {"momentum", Value()}};
  if (o.momentum) {
    values.set("momentum", List{o.momentum->base, o.momentum->most, o.momentum->beta1});
  }
  return values;
}
Dict shape_values(const PolynomialLr& o) {
  return {{"shape", "polynomial"}, {"total_iters", o.total_iters}, {"power", o.power}};
}
Dict shape_values(const PlateauLr& o) {
  return {{"shape", "plateau"},       {"mode", o.mode == PlateauMode::kMin ? "min" : "max"},
          {"factor", o.factor},       {"patience", o.patience},
          {"threshold", o.threshold}, {"threshold_mode", o.threshold_mode == PlateauThreshold::kRel ? "rel" : "abs"},
          {"cooldown", o.cooldown},   {"eps", o.eps}};
}

std::string text_of(const Value* value) {
  if (value == nullptr || value->is_none()) return "unset";
  if (const auto* number = value->get_if<double>()) return write_number(*number);
  if (const auto* number = value->get_if<int64_t>()) return std::to_string(*number);
  if (const auto* flag = value->get_if<bool>()) return *flag ? "on" : "off";
  if (const auto* text = value->get_if<std::string>()) return *text;
  const List* items = value->items();
  if (items == nullptr) return std::string(value->kind());
  std::string text;
  for (const Value& item : *items) text += cat(text.empty() ? "" : ", ", text_of(&item));
  return text;
}

}  // namespace

Dict to_values(const ScheduleOptions& options) {
  Dict values = std::visit([](const auto& shape) { return shape_values(shape); }, options.shape);
  values.set("base_lr", options.base_lr);
  values.set("lr_min", options.lr_min);
  values.set("warmup", options.warmup);
  values.set("warmup_start", value_of(options.warmup_start));
  return values;
}

std::string difference(const Dict& was, const Dict& is) {
  for (const auto& [key, value] : is) {
    const std::string before = text_of(was.find(key)), now = text_of(&value);
    if (before != now) return cat(checkpoint::key_text(key), " was ", before, ", and is ", now);
  }
  return "";
}

}  // namespace lockstep::loop
