#include "lockstep/checkpoint/paddle_optimizer.h"

#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/paddle_reader.h"
#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/value_view.h"
#include "lockstep/checkpoint/optimizer_state.h"
#include "lockstep/checkpoint/paddle_names.h"

namespace lockstep::checkpoint {
namespace {

using std::string_view;

constexpr string_view kAdam = "Adam";  // and AdamW, Lamb
constexpr string_view kStep = "step", kSchedule = "LR_Scheduler", kMasters = "master_weights",
                      kMasterOf = "_fp32_master_";
constexpr string_view kPowers[] = {"beta1_pow_acc", "beta2_pow_acc"};

struct Accumulator {
  string_view paddle, torch;
};
struct Rule {
  string_view name;                       // PyTorch's class
  string_view people;                     // those whose state looks like that, for messages
  std::vector<Accumulator> accumulators;  // the first one tells it from others
  bool counts_steps;                      // whether PyTorch's state has their number
};
const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      {kAdam,
       "Adam, AdamW or Lamb",
       {{"moment1", "exp_avg"}, {"moment2", "exp_avg_sq"}, {"moment2_max", "max_exp_avg_sq"}},
       true},
      {"SGD", "SGD with momentum", {{"velocity", "momentum_buffer"}}, false},
      {"Adagrad", "Adagrad", {{"moment", "sum"}}, true}};
  return all;
}

// By accumulator: "moment1". What Paddle numbers as "moment1_0" is one of them.
using Accumulators = std::map<string_view, at::Tensor>;

// Removes "_0" from the end.
string_view without_number(string_view text) {
  const size_t digits = text.find_last_not_of("0123456789");
  return digits == string_view::npos || digits + 1 == text.size() || text[digits] != '_' ? text
                                                                                         : text.substr(0, digits);
}

// What is behind the parameter's name, "moment1" of "linear_0.w_0_moment1_0"; empty for another parameter's.
string_view accumulator_of(string_view key, string_view parameter) {
  if (!key.starts_with(parameter)) return {};
  key.remove_prefix(parameter.size());
  if (key.starts_with(kMasterOf)) {
    key.remove_prefix(kMasterOf.size());
    key.remove_prefix(std::min(key.find_first_not_of("0123456789"), key.size()));
  }
  if (!key.starts_with('_')) return {};
  return without_number(key.substr(1));
}

// The accumulators of each parameter.
std::vector<Accumulators> sorted(const Dict& optimizer, const std::vector<PaddleParameter>& parameters,
                                 const std::string& file) {
  std::vector<Accumulators> all(parameters.size());
  for (const auto& [key, value] : optimizer) {
    const auto* tensor = value.get_if<at::Tensor>();
    const auto* name = std::get_if<std::string>(&key);
    if (tensor == nullptr || name == nullptr) continue;
    size_t best = parameters.size();
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (accumulator_of(*name, parameters[i].paddle).empty()) continue;
      if (best == parameters.size() || parameters[i].paddle.size() > parameters[best].paddle.size()) best = i;
    }
    if (best == parameters.size()) {
      throw DataError(file, ": ", printable(*name), " is of no parameter of the .pdparams; give both of one network");
    }
    const string_view accumulator = accumulator_of(*name, parameters[best].paddle);
    if (!all[best].emplace(accumulator, *tensor).second) {
      throw DataError(file, ": has more than one ", printable(accumulator), " of ", printable(parameters[best].name));
    }
  }
  return all;
}

bool has(const Rule& rule, string_view name, string_view Accumulator::*of) {
  return std::ranges::find(rule.accumulators, name, of) != rule.accumulators.end();
}

// Whether the rule has all of these, and its first one is there.
bool fits(const Rule& rule, const Accumulators& own) {
  const auto is_its = [&](const auto& each) {
    const bool is_power = rule.name == kAdam && std::ranges::find(kPowers, each.first) != std::end(kPowers);
    return is_power || has(rule, each.first, &Accumulator::paddle);
  };
  return own.contains(rule.accumulators[0].paddle) && std::ranges::all_of(own, is_its);
}

// The rule of all parameters that have a state.
const Rule& rule_of(const std::vector<Accumulators>& all, const std::string& file) {
  const Rule* rule = nullptr;
  for (const Accumulators& own : all) {
    if (own.empty()) continue;
    if (rule == nullptr) {
      const auto found = std::ranges::find_if(rules(), [&](const Rule& each) { return fits(each, own); });
      rule = found == rules().end() ? nullptr : &*found;
    }
    if (rule != nullptr && fits(*rule, own)) continue;
    std::string names;
    for (const auto& [name, tensor] : own) names += cat(names.empty() ? "" : ", ", name);
    throw DataError(file, ": the state of an optimizer that has ", printable(names),
                    ", which PyTorch's don't have; Adam's, Momentum's and Adagrad's are converted");
  }
  if (rule == nullptr) throw DataError(file, ": an optimizer without state; make it anew");
  return *rule;
}

double only_number(const at::Tensor& tensor, const std::string& what) {
  if (tensor.numel() != 1) throw DataError(what, ": expected one number, found a tensor of ", tensor.numel());
  return tensor.item<double>();
}

// The number of steps s of powers beta^(s + 1). The first one is 0 in fp32 after some hundred steps.
double steps_of(const Accumulators& own, std::pair<double, double> betas, const std::string& what) {
  double steps = -1;
  for (const auto& [name, beta] : {std::pair{kPowers[0], betas.first}, {kPowers[1], betas.second}}) {
    const auto found = own.find(name);
    if (found == own.end()) throw DataError(what, ": has no ", name);
    const double power = only_number(found->second, cat(what, ": ", name));
    if (!(power >= 0 && power <= 1)) throw DataError(what, ": ", name, " is ", power);
    if (power < 1e-30 || beta == 0) continue;
    const double exact = std::log(power) / std::log(beta) - 1, whole = std::round(exact);
    constexpr double kTold = 5000;  // rounding adds up; later on the number of steps hardly matters
    const double allowed = whole < kTold ? 0.01 + 6e-5 * whole : 1e-3 * whole;
    const bool fits = std::abs(exact - whole) <= allowed && whole >= 0;
    if (!fits || (steps >= 0 && std::abs(whole - steps) > allowed)) {
      throw DataError(what, ": ", name, " of ", power, " is no power of ", beta,
                      " that fits; give the betas (--beta1, --beta2)");
    }
    if (steps < 0) steps = whole;
  }
  constexpr double kMany = 1e6;  // both powers have vanished, and with them what steps change
  return steps < 0 ? kMany : steps;
}

void check_sizes(at::IntArrayRef sizes, const PaddleParameter& parameter, const std::string& what) {
  if (sizes == at::IntArrayRef(parameter.sizes)) return;
  throw DataError(what, ": is ", sizes, " in Paddle's layout, and the parameter ", at::IntArrayRef(parameter.sizes));
}

at::Tensor to_torch(const at::Tensor& tensor, const PaddleParameter& parameter, const std::string& what) {
  check_sizes(tensor.sizes(), parameter, what);
  return parameter.is_linear ? tensor.t() : tensor;
}

at::Tensor from_torch(const at::Tensor& tensor, const PaddleParameter& parameter, const std::string& what) {
  const at::Tensor result = parameter.is_linear && tensor.dim() == 2 ? tensor.t() : tensor;
  check_sizes(result.sizes(), parameter, what);
  return result.contiguous();
}

// What PyTorch's class needs to go on, with Paddle's defaults.
Dict options_of(const Rule& rule, std::pair<double, double> betas, double lr, bool amsgrad) {
  if (rule.name == "SGD") {
    return {{"lr", lr},          {"momentum", 0.9},  {"dampening", 0.0}, {"weight_decay", 0.0},
            {"nesterov", false}, {"maximize", false}};
  }
  if (rule.name == "Adagrad") {
    return {{"lr", lr},    {"lr_decay", 0.0},  {"weight_decay", 0.0}, {"initial_accumulator_value", 0.0},
            {"eps", 1e-6}, {"maximize", false}};
  }
  return {{"lr", lr},           {"betas", Tuple{{betas.first, betas.second}}},
          {"eps", 1e-8},        {"weight_decay", 0.0},
          {"amsgrad", amsgrad}, {"maximize", false}};
}

// Throws DataError for options by which PyTorch's state means something that Paddle doesn't have.
void check_options(const ValueView& group) {
  const auto refuse = [&](const char* what) {
    throw DataError(group.file(), ": ", what, ", which Paddle doesn't have; its state would mean something else there");
  };
  const auto maximize = group.find("maximize");
  if (maximize && maximize->boolean()) refuse("maximize is set");
  for (const char* name : {"dampening", "lr_decay"}) {
    const auto value = group.find(name);
    if (value && value->number() != 0) refuse(name);
  }
  if (group.find("trust_coefficient")) refuse("the optimizer is LARS");
  if (group.find("decoupled_weight_decay") && !group.find("amsgrad")) refuse("the optimizer is RAdam");
}

std::optional<double> rate_in(const Dict& optimizer, const std::string& file) {
  const Value* schedule = optimizer.find(std::string(kSchedule));
  if (schedule == nullptr || schedule->get_if<Dict>() == nullptr) return std::nullopt;
  const auto rate = ValueView(*schedule, file).find("last_lr");
  return rate ? std::optional(rate->number()) : std::nullopt;
}

}  // namespace

std::vector<PaddleParameter> paddle_parameters(const Dict& state, const std::set<std::string>& linear,
                                               const std::string& file) {
  const Value* table = state.find(std::string(kPaddleNames));
  const Dict* names = table == nullptr ? nullptr : table->get_if<Dict>();
  if (names == nullptr) {
    throw DataError(file, ": has no table of Paddle's own names; save the model's state_dict() with paddle.save");
  }
  std::vector<PaddleParameter> parameters;
  for (const auto& [key, value] : state) {
    const std::string name = key_text(key);
    const auto* tensor = value.get_if<at::Tensor>();
    if (tensor == nullptr || is_paddle_statistic(name)) continue;
    const Value* own = names->find(key);
    const auto* text = own == nullptr ? nullptr : own->get_if<std::string>();
    if (text == nullptr) throw DataError(file, ": the table of Paddle's own names lacks ", printable(name));
    const bool is_shared = std::ranges::find(parameters, *text, &PaddleParameter::paddle) != parameters.end();
    if (is_shared) continue;
    parameters.push_back({name, *text, linear.contains(name), tensor->sizes().vec()});
  }
  return parameters;
}

bool is_paddle_optimizer(const Dict& dict) {
  if (dict.contains(std::string(kSchedule)) || dict.contains(std::string(kMasters))) return true;
  return std::ranges::any_of(dict, [](const auto& entry) {
    const std::string name = key_text(entry.key);
    const string_view whole = without_number(name);
    const auto ends_in = [&](string_view accumulator) { return whole.ends_with(cat('_', accumulator)); };
    const bool is_numbered = whole.size() < name.size();
    const bool is_its = std::ranges::any_of(rules(), [&](const Rule& rule) {
      return std::ranges::any_of(rule.accumulators, [&](const Accumulator& each) { return ends_in(each.paddle); });
    });
    return is_numbered && (is_its || std::ranges::any_of(kPowers, ends_in));
  });
}

PaddleOptimizer optimizer_from_paddle(const Dict& optimizer, const std::vector<PaddleParameter>& parameters,
                                      std::pair<double, double> betas, const std::string& file) {
  const std::vector<Accumulators> all = sorted(optimizer, parameters, file);
  const Rule& rule = rule_of(all, file);
  const auto rate = rate_in(optimizer, file);
  OptimizerState state;
  const bool amsgrad = std::ranges::any_of(all, [](const Accumulators& own) { return own.contains("moment2_max"); });
  state.groups.push_back({options_of(rule, betas, rate.value_or(1e-3), amsgrad), parameters.size()});
  double most_steps = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string what = cat(file, ": ", printable(parameters[i].name));
    Dict own;
    if (!all[i].empty() && rule.counts_steps) {
      const double steps = rule.name == kAdam ? steps_of(all[i], betas, what) : 1;
      own.set(std::string(kStep), at::scalar_tensor(steps, at::kFloat));
      most_steps = std::max(most_steps, steps);
    }
    for (const Accumulator& each : rule.accumulators) {
      const auto found = all[i].find(each.paddle);
      if (found != all[i].end()) {
        own.set(std::string(each.torch), to_torch(found->second, parameters[i], cat(what, ": ", each.paddle)));
      }
    }
    state.parameters.push_back(std::move(own));
  }
  PaddleOptimizer result{optimizer_to_dict(state), std::string(rule.name)};
  result.notes.push_back(cat(
      "an optimizer's state, of ", rule.people,
      rule.name == kAdam ? cat(", after ", most_steps, " steps by betas of ", betas.first, " and ", betas.second) : "",
      "; its hyper-parameters are Paddle's defaults", rate ? cat(", its rate the schedule's ", *rate) : "",
      ", for a .pdopt has none: set your own once it is loaded"));
  return result;
}

PaddleOptimizer optimizer_to_paddle(const Value& optimizer, const std::vector<PaddleParameter>& parameters,
                                    const std::string& file) {
  const OptimizerState state = optimizer_from_dict(ValueView(optimizer, file));
  if (state.groups.size() != 1) {
    throw DataError(
        file, ": has ", state.groups.size(),
        " groups of parameters, whose order is not the model's; only an optimizer of one group is converted");
  }
  if (state.parameters.size() != parameters.size()) {
    throw DataError(file, ": the optimizer has ", state.parameters.size(), " parameters, and the names are of ",
                    parameters.size(),
                    "; give the .pdparams of this network, and an optimizer of all its parameters(), frozen ones too");
  }
  const Value options(state.groups[0].options);
  const ValueView of_group(options, file);
  check_options(of_group);
  Dict result;
  const Rule* rule = nullptr;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string what = cat(file, ": the optimizer's state of ", printable(parameters[i].name));
    const std::string paddle = parameters[i].paddle + '_';
    const Value own_value(state.parameters[i]);
    const ValueView own(own_value, what);
    if (state.parameters[i].empty()) continue;
    const auto is_its = [&](const Rule& each) {
      const auto has_it = [&](const Dict::Entry& entry) {
        const std::string name = key_text(entry.key);
        return has(each, name, &Accumulator::torch) || name == kStep || entry.value.is_none();
      };
      return own.find(std::string(each.accumulators[0].torch)).has_value() &&
             std::ranges::all_of(state.parameters[i], has_it);
    };
    const auto found = std::ranges::find_if(rules(), is_its);
    if (found == rules().end() || (rule != nullptr && rule != &*found)) {
      throw DataError(what,
                      " is of no optimizer that Paddle has with the same state: Adam, AdamW, SGD with momentum, "
                      "Adagrad");
    }
    rule = &*found;
    for (const Accumulator& each : rule->accumulators) {
      const auto tensor = own.find(std::string(each.torch));
      if (!tensor) continue;
      result.set(cat(paddle, each.paddle, "_0"), from_torch(tensor->tensor(), parameters[i], what));
    }
    if (rule->name != kAdam) continue;
    const ValueView step = own[std::string(kStep)];
    const bool is_tensor = step.value().is_tensor();
    const double made = is_tensor ? only_number(step.tensor(), what) : step.number();
    const auto betas = of_group["betas"].items();
    if (betas.size() != 2) throw DataError(what, ": betas are ", betas.size(), " numbers; expected 2");
    for (size_t each = 0; each < 2; ++each) {
      result.set(cat(paddle, kPowers[each], "_0"), at::full({1}, std::pow(betas[each].number(), made + 1), at::kFloat));
    }
  }
  if (rule == nullptr) throw DataError(file, ": an optimizer without state; make it anew in Paddle");
  return {std::move(result), std::string(rule->name), {cat("the state of ", rule->people)}};
}

Dict masters_from_paddle(const Dict& optimizer, const std::vector<PaddleParameter>& parameters,
                         const std::string& file) {
  const Value* found = optimizer.find(std::string(kMasters));
  const Dict* masters = found == nullptr ? nullptr : found->get_if<Dict>();
  Dict state;
  if (masters == nullptr) return state;
  for (const PaddleParameter& each : parameters) {
    const Value* value = masters->find(each.paddle);
    const auto* tensor = value == nullptr ? nullptr : value->get_if<at::Tensor>();
    if (tensor != nullptr) state.set(each.name, to_torch(*tensor, each, cat(file, ": master of ", each.name)));
  }
  return state;
}

}  // namespace lockstep::checkpoint
