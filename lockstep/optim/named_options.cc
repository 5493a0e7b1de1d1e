#include "lockstep/optim/named_options.h"

#include <algorithm>
#include <array>
#include <type_traits>

namespace lockstep::optim {
namespace {

[[noreturn]] void throw_wrong_type(std::string_view owner, const NamedOption& option, const char* expected) {
  throw ConfigError(owner, ": ", option.name, " is ", to_text(option.value), ", not ", expected);
}

}  // namespace

void read_value(std::string_view owner, const NamedOption& option, bool& field) {
  const bool* value = std::get_if<bool>(&option.value);
  if (value == nullptr) throw_wrong_type(owner, option, "True or False");
  field = *value;
}

void read_value(std::string_view owner, const NamedOption& option, int64_t& field) {
  const auto* value = std::get_if<int64_t>(&option.value);
  if (value == nullptr) throw_wrong_type(owner, option, "a whole number");
  field = *value;
}

void read_value(std::string_view owner, const NamedOption& option, double& field) {
  if (const auto* number = std::get_if<double>(&option.value)) {
    field = *number;
  } else if (const auto* whole = std::get_if<int64_t>(&option.value)) {
    field = static_cast<double>(*whole);
  } else {
    throw_wrong_type(owner, option, "a number");
  }
}

void read_value(std::string_view owner, const NamedOption& option, std::pair<double, double>& field) {
  const auto* value = std::get_if<std::pair<double, double>>(&option.value);
  if (value == nullptr) throw_wrong_type(owner, option, "a pair of numbers");
  field = *value;
}

std::string to_text(const OptionValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using Type = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<Type, std::monostate>) return "None";
        if constexpr (std::is_same_v<Type, bool>) return v ? "True" : "False";
        if constexpr (std::is_arithmetic_v<Type>) return cat(v);
        if constexpr (std::is_same_v<Type, std::string>) return cat('"', v, '"');
        if constexpr (std::is_same_v<Type, std::pair<double, double>>) return cat("(", v.first, ", ", v.second, ")");
      },
      value);
}

void throw_unknown_option(std::string_view owner, std::string_view name, const std::vector<std::string>& known) {
  const std::string guess = nearest(name, known);
  throw ConfigError(owner, " has no option \"", name, "\"", guess.empty() ? "" : cat("; did you mean ", guess, "?"));
}

bool is_ignored(std::string_view name) {
  static constexpr std::array kNames = {"foreach", "fused",       "capturable",    "differentiable", "initial_lr",
                                        "max_lr",  "min_lr",      "base_momentum", "max_momentum",   "swa_lr",
                                        "name",    "param_names", "lr_scale"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

NamedOptions ignored_options() {
  return {{"foreach", std::monostate()}, {"differentiable", false}, {"fused", std::monostate()}};
}

}  // namespace lockstep::optim
