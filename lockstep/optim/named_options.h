// Options by name: read from a command line or a checkpoint into an options struct, and written back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/optim/state.h"

namespace lockstep::optim {

// Reads `option` into a field of that type. A float takes an int as well; a bool takes nothing but a bool. Throws
// ConfigError that begins with `owner` for a value that does not fit.
void read_value(std::string_view owner, const NamedOption& option, bool& field);
void read_value(std::string_view owner, const NamedOption& option, int64_t& field);
void read_value(std::string_view owner, const NamedOption& option, double& field);
void read_value(std::string_view owner, const NamedOption& option, std::pair<double, double>& field);

// "True", "0.9", "(0.9, 0.999)" …, as PyTorch prints them.
std::string to_text(const OptionValue& value);

// Throws ConfigError for a name that is not among `known`, and suggests the nearest of them.
[[noreturn]] void throw_unknown_option(std::string_view owner, std::string_view name,
                                       const std::vector<std::string>& known);

// Whether an option of PyTorch's has no effect on the numbers: it says how to compute (foreach, fused …), or a
// scheduler keeps it there (initial_lr …).
bool is_ignored(std::string_view name);

// Such options at their defaults, for what PyTorch reads.
NamedOptions ignored_options();

template <typename Options>
std::vector<std::string> field_names() {
  std::vector<std::string> names;
  Options options;
  Options::fields(options, [&](const char* name, const auto&) { names.emplace_back(name); });
  return names;
}

// Sets the field of that name; false if there is none.
template <typename Options>
bool read_field(std::string_view owner, const NamedOption& option, Options& options) {
  bool found = false;
  Options::fields(options, [&](const char* name, auto& field) {
    if (option.name != name) return;
    read_value(owner, option, field);
    found = true;
  });
  return found;
}

// Sets the named fields and checks all options. Throws ConfigError for a name that the optimizer does not have.
template <typename Options>
void read_options(const NamedOptions& named, Options& options) {
  for (const NamedOption& option : named) {
    if (!read_field(Options::kName, option, options)) {
      throw_unknown_option(Options::kName, option.name, field_names<Options>());
    }
  }
  options.check();
}

// Sets the fields that PyTorch wrote. Options without effect are skipped; those of fixed() must have our value.
template <typename Options>
void read_pytorch_options(const NamedOptions& named, Options& options) {
  NamedOptions own;
  for (const NamedOption& option : named) {
    if (is_ignored(option.name)) continue;
    bool fixed = false;
    for (const NamedOption& ours : Options::fixed()) {
      if (ours.name != option.name) continue;
      fixed = true;
      if (ours.value != option.value) {
        throw ConfigError(Options::kName, ": the checkpoint has ", option.name, "=", to_text(option.value),
                          ", and this optimizer works with ", to_text(ours.value));
      }
    }
    if (!fixed) own.push_back(option);
  }
  read_options(own, options);
}

// All options that PyTorch's optimizer of this name has.
template <typename Options>
NamedOptions write_options(const Options& options) {
  NamedOptions named;
  Options::fields(options, [&](const char* name, const auto& value) { named.push_back({name, value}); });
  for (NamedOption& option : Options::fixed()) named.push_back(std::move(option));
  for (NamedOption& option : ignored_options()) named.push_back(std::move(option));
  return named;
}

}  // namespace lockstep::optim
