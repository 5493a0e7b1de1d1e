#include "lockstep/optim/rules/libtorch_state.h"

#include <ATen/ops/scalar_tensor.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/optim/named_options.h"
#include "lockstep/optim/rules/adagrad.h"
#include "lockstep/optim/rules/adam.h"
#include "lockstep/optim/rules/rmsprop.h"
#include "lockstep/optim/rules/sgd.h"

namespace lockstep::optim {
namespace {

// Each kind: libtorch's types, the options of Lockstep's optimizer of that name, and the fields by PyTorch's names.
struct SgdKind {
  using Optimizer = torch::optim::SGD;
  using Options = torch::optim::SGDOptions;
  using State = torch::optim::SGDParamState;
  using Ours = SgdOptions;
  static void options(Options& options, const auto& visit) {
    visit("lr", options.lr());
    visit("momentum", options.momentum());
    visit("dampening", options.dampening());
    visit("weight_decay", options.weight_decay());
    visit("nesterov", options.nesterov());
  }
  static void state(State& state, const auto& visit) { visit("momentum_buffer", state.momentum_buffer()); }
};

template <typename TorchOptimizer, typename TorchOptions, typename TorchState, typename OurOptions>
struct AdamKind {
  using Optimizer = TorchOptimizer;
  using Options = TorchOptions;
  using State = TorchState;
  using Ours = OurOptions;
  static void options(Options& options, const auto& visit) {
    visit("lr", options.lr());
    visit("betas", options.betas());
    visit("eps", options.eps());
    visit("weight_decay", options.weight_decay());
    visit("amsgrad", options.amsgrad());
  }
  static void state(State& state, const auto& visit) {
    visit("step", state.step());
    visit("exp_avg", state.exp_avg());
    visit("exp_avg_sq", state.exp_avg_sq());
    visit("max_exp_avg_sq", state.max_exp_avg_sq());
  }
};

struct RmspropKind {
  using Optimizer = torch::optim::RMSprop;
  using Options = torch::optim::RMSpropOptions;
  using State = torch::optim::RMSpropParamState;
  using Ours = RmspropOptions;
  static void options(Options& options, const auto& visit) {
    visit("lr", options.lr());
    visit("alpha", options.alpha());
    visit("eps", options.eps());
    visit("weight_decay", options.weight_decay());
    visit("momentum", options.momentum());
    visit("centered", options.centered());
  }
  static void state(State& state, const auto& visit) {
    visit("step", state.step());
    visit("square_avg", state.square_avg());
    visit("momentum_buffer", state.momentum_buffer());
    visit("grad_avg", state.grad_avg());
  }
};

struct AdagradKind {
  using Optimizer = torch::optim::Adagrad;
  using Options = torch::optim::AdagradOptions;
  using State = torch::optim::AdagradParamState;
  using Ours = AdagradOptions;
  static void options(Options& options, const auto& visit) {
    visit("lr", options.lr());
    visit("lr_decay", options.lr_decay());
    visit("weight_decay", options.weight_decay());
    visit("initial_accumulator_value", options.initial_accumulator_value());
    visit("eps", options.eps());
  }
  static void state(State& state, const auto& visit) {
    visit("step", state.step());
    visit("sum", state.sum());
  }
};

// Calls act(Kind(), optimizer) with the optimizer's kind. Returns whether there is one.
template <typename Act>
bool with_kind(const torch::optim::Optimizer& optimizer, const Act& act) {
  const auto try_kind = [&]<typename Kind>(Kind kind) {
    const auto* found = dynamic_cast<const typename Kind::Optimizer*>(&optimizer);
    if (found != nullptr) act(kind);
    return found != nullptr;
  };
  using torch::optim::AdamParamState, torch::optim::AdamWParamState;
  return try_kind(SgdKind()) ||
         try_kind(AdamKind<torch::optim::Adam, torch::optim::AdamOptions, AdamParamState, AdamOptions>()) ||
         try_kind(AdamKind<torch::optim::AdamW, torch::optim::AdamWOptions, AdamWParamState, AdamWOptions>()) ||
         try_kind(RmspropKind()) || try_kind(AdagradKind());
}

[[noreturn]] void throw_no_kind() {
  throw ConfigError(
      "the optimizer's state can't be saved or loaded: it is none of libtorch's SGD, Adam, AdamW, RMSprop "
      "and Adagrad, and none of lockstep/optim");
}

OptionValue to_option(const std::tuple<double, double>& pair) {
  return std::pair(std::get<0>(pair), std::get<1>(pair));
}
template <typename Number>
OptionValue to_option(const Number& number) {
  return number;
}

// Lockstep's options with the values of libtorch's, and back.
template <typename Kind>
typename Kind::Ours ours_of(typename Kind::Options& theirs) {
  NamedOptions named;
  Kind::options(theirs, [&](const char* name, const auto& value) { named.push_back({name, to_option(value)}); });
  typename Kind::Ours ours;
  read_options(named, ours);
  return ours;
}

void assign(const std::pair<double, double>& value, std::tuple<double, double>& field) {
  field = {value.first, value.second};
}
template <typename Value, typename Field>
void assign(const Value& value, Field& field) {
  if constexpr (std::is_same_v<Value, Field>) field = value;  // fields of one name have one type
}

template <typename Kind>
void set_options(const typename Kind::Ours& ours, typename Kind::Options& theirs) {
  Kind::Ours::fields(ours, [&](std::string_view name, const auto& value) {
    const auto set = [&](std::string_view their_name, auto& field) {
      if (name == their_name) assign(value, field);
    };
    Kind::options(theirs, set);
  });
}

std::string text_of(size_t number, std::span<const std::string> names) {
  return number < names.size() ? names[number] : cat("parameter ", number);
}

template <typename Kind>
OptimizerState state_of(torch::optim::Optimizer& optimizer) {
  OptimizerState all;
  int64_t number = 0;
  for (auto& group : optimizer.param_groups()) {
    GroupState written{.options = write_options(ours_of<Kind>(static_cast<typename Kind::Options&>(group.options()))),
                       .parameters = {}};
    for (const auto& parameter : group.params()) {
      written.parameters.push_back(number);
      const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
      if (found != optimizer.state().end()) {
        ParameterState state{.index = number, .tensors = {}};
        Kind::state(static_cast<typename Kind::State&>(*found->second), [&](const char* name, const auto& value) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, int64_t>) {
            state.tensors.push_back({name, at::scalar_tensor(value, at::kFloat)});
          } else if (value.defined()) {
            state.tensors.push_back({name, value});
          }
        });
        all.parameters.push_back(std::move(state));
      }
      ++number;
    }
    all.groups.push_back(std::move(written));
  }
  return all;
}

// A parameter's state from a checkpoint. What the checkpoint lacks stays undefined.
template <typename Kind>
std::unique_ptr<typename Kind::State> read_state(const ParameterState& saved, const at::Tensor& parameter,
                                                 const std::string& owner) {
  auto state = std::make_unique<typename Kind::State>();
  std::vector<std::string> known;
  Kind::state(*state, [&](const char* name, auto& field) {
    known.emplace_back(name);
    for (const auto& [saved_name, value] : saved.tensors) {
      if (saved_name != name || !value.defined()) continue;
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field)>, int64_t>) {
        field = static_cast<int64_t>(value.template item<double>());
      } else if (value.sizes() != parameter.sizes()) {
        throw ConfigError(owner, ": ", name, " is ", value.sizes(), " in the checkpoint, the parameter ",
                          parameter.sizes());
      } else {
        field = value.to(parameter.options()).clone();
      }
    }
  });
  for (const auto& [name, value] : saved.tensors) {
    if (std::find(known.begin(), known.end(), name) == known.end()) throw_unknown_option(owner, name, known);
  }
  return state;
}

template <typename Kind>
void load_state(torch::optim::Optimizer& optimizer, const OptimizerState& saved, std::span<const std::string> names) {
  auto& groups = optimizer.param_groups();
  const std::string owner = Kind::Ours::kName;
  if (saved.groups.size() != groups.size()) {
    throw ConfigError(owner, ": the checkpoint has ", saved.groups.size(), " parameter groups, the optimizer ",
                      groups.size());
  }
  std::vector<typename Kind::Ours> options(groups.size());
  std::vector<at::Tensor> parameters;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (saved.groups[i].parameters.size() != groups[i].params().size()) {
      throw ConfigError(owner, ": group ", i, " has ", saved.groups[i].parameters.size(),
                        " parameters in the checkpoint, and ", groups[i].params().size(), " here");
    }
    read_pytorch_options(saved.groups[i].options, options[i]);
    if (options[i].maximize) throw ConfigError(owner, ": the checkpoint has maximize=True, which libtorch's has not");
    parameters.insert(parameters.end(), groups[i].params().begin(), groups[i].params().end());
  }
  std::vector<std::unique_ptr<typename Kind::State>> states(parameters.size());
  for (const auto& each : saved.parameters) {
    const auto number = static_cast<size_t>(each.index);
    states.at(number) = read_state<Kind>(each, parameters[number], cat(owner, ", ", text_of(number, names)));
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    set_options<Kind>(options[i], static_cast<typename Kind::Options&>(groups[i].options()));
  }
  optimizer.state().clear();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (states[i]) optimizer.state()[parameters[i].unsafeGetTensorImpl()] = std::move(states[i]);
  }
}

}  // namespace

std::string_view libtorch_name(const torch::optim::Optimizer& optimizer) {
  std::string_view name;
  with_kind(optimizer, [&]<typename Kind>(Kind) { name = Kind::Ours::kName; });
  return name;
}

OptimizerState libtorch_state(torch::optim::Optimizer& optimizer) {
  OptimizerState state;
  if (!with_kind(optimizer, [&]<typename Kind>(Kind) { state = state_of<Kind>(optimizer); })) throw_no_kind();
  return state;
}

void load_libtorch_state(torch::optim::Optimizer& optimizer, const OptimizerState& state,
                         std::span<const std::string> names) {
  if (!with_kind(optimizer, [&]<typename Kind>(Kind) { load_state<Kind>(optimizer, state, names); })) throw_no_kind();
}

}  // namespace lockstep::optim
