#include "lockstep/optim/positions.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::optim {
namespace {

std::vector<torch::optim::OptimizerParamGroup> two_groups() {
  return {torch::optim::OptimizerParamGroup({at::zeros({1}), at::zeros({1})}),
          torch::optim::OptimizerParamGroup({at::zeros({1})})};
}

OptimizerState saved(std::vector<std::vector<int64_t>> groups) {
  OptimizerState state;
  for (auto& parameters : groups) state.groups.push_back({.options = {}, .parameters = std::move(parameters)});
  return state;
}

TEST(Positions, PairByOrderWhateverTheIndices) {
  const PositionMap positions = match_groups("sgd", saved({{7, 3}, {0}}), two_groups());
  const Position second = find_position("sgd", positions, 3);
  EXPECT_EQ(second.group, 0u);
  EXPECT_EQ(second.index, 1u);
  const Position third = find_position("sgd", positions, 0);
  EXPECT_EQ(third.group, 1u);
  EXPECT_EQ(third.number, 2u);
}

TEST(Positions, RefuseWhatDoesNotPair) {
  EXPECT_THROW(match_groups("sgd", saved({{0, 1, 2}}), two_groups()), ConfigError);
  EXPECT_THROW(match_groups("sgd", saved({{0}, {1, 2}}), two_groups()), ConfigError);
  EXPECT_THROW(match_groups("sgd", saved({{0, 1}, {1}}), two_groups()), ConfigError);
  const PositionMap positions = match_groups("sgd", saved({{0, 1}, {2}}), two_groups());
  EXPECT_THROW(find_position("sgd", positions, 3), ConfigError);
  EXPECT_THROW(find_position("sgd", positions, -1), ConfigError);
}

TEST(Positions, ParametersHaveNamesOrNumbers) {
  const std::vector<std::string> names = {"fc.weight"};
  EXPECT_EQ(parameter_name(names, 0), "fc.weight");
  EXPECT_EQ(parameter_name(names, 1), "parameter 1");
}

}  // namespace
}  // namespace lockstep::optim
