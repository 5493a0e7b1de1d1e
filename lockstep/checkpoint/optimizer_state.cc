#include "lockstep/checkpoint/optimizer_state.h"

#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {
namespace {

// Reads a group's options and adds the numbers of its parameters, in the order of the groups, to `numbers`.
OptimizerState::Group read_group(const ValueView& view, std::vector<int64_t>& numbers) {
  OptimizerState::Group group;
  for (const auto& [key, value] : view.dict()) {
    if (key != Key("params")) group.options.set(key, value);
  }
  for (const ValueView& number : view["params"].items()) {
    numbers.push_back(number.integer());
    ++group.parameters;
  }
  return group;
}

}  // namespace

Dict optimizer_to_dict(const OptimizerState& state) {
  List groups;
  int64_t next = 0;
  for (const OptimizerState::Group& group : state.groups) {
    List numbers;
    for (size_t i = 0; i < group.parameters; ++i) numbers.emplace_back(next++);
    Dict entry = group.options;
    entry.set("params", std::move(numbers));
    groups.emplace_back(std::move(entry));
  }
  if (static_cast<size_t>(next) != state.parameters.size()) {
    throw BugError("an optimizer's groups have ", next, " parameters, its state ", state.parameters.size());
  }
  Dict parameters;
  for (size_t i = 0; i < state.parameters.size(); ++i) {
    if (!state.parameters[i].empty()) parameters.set(static_cast<int64_t>(i), state.parameters[i]);
  }
  return {{"state", std::move(parameters)}, {"param_groups", std::move(groups)}};
}

OptimizerState optimizer_from_dict(const ValueView& dict) {
  OptimizerState state;
  std::vector<int64_t> numbers;
  for (const ValueView& group : dict["param_groups"].items()) state.groups.push_back(read_group(group, numbers));

  // Numbers need not be in order, only unique: the state is kept by the order in the groups.
  state.parameters.resize(numbers.size());
  std::unordered_map<int64_t, size_t> indices;
  for (size_t index = 0; index < numbers.size(); ++index) {
    if (!indices.emplace(numbers[index], index).second) {
      throw DataError(dict["param_groups"].where(), ": parameter ", numbers[index], " is in two groups");
    }
  }
  const ValueView states = dict["state"];
  for (const auto& [key, value] : states.dict()) {
    const auto* number = std::get_if<int64_t>(&key);
    const auto found = number == nullptr ? indices.end() : indices.find(*number);
    if (found == indices.end()) throw DataError(states[key].where(), ": no group has such a parameter");
    state.parameters[found->second] = states[key].dict();
  }
  return state;
}

}  // namespace lockstep::checkpoint
