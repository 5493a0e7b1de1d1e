#include "lockstep/checkpoint/optimizer_state.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;

OptimizerState example() {
  return {.groups = {{.options = {{"lr", 0.1}}, .parameters = 2}, {.options = {{"lr", 0.2}}, .parameters = 1}},
          .parameters = {Dict{{"step", 3}}, Dict{}, Dict{{"step", 5}}}};
}

OptimizerState from(const Value& value) { return optimizer_from_dict(ValueView(value, "f.pt")); }

TEST(OptimizerState, HasPyTorchsLayout) {
  EXPECT_EQ(describe(optimizer_to_dict(example())).dump(),
            R"({"state/0/step":{"value":3},"state/2/step":{"value":5},"param_groups/0/lr":{"value":0.1},)"
            R"("param_groups/0/params/0":{"value":0},"param_groups/0/params/1":{"value":1},)"
            R"("param_groups/1/lr":{"value":0.2},"param_groups/1/params/0":{"value":2}})");
}

TEST(OptimizerState, ComesBack) {
  const OptimizerState back = from(optimizer_to_dict(example()));
  EXPECT_EQ(describe(optimizer_to_dict(back)).dump(), describe(optimizer_to_dict(example())).dump());
  ASSERT_EQ(back.groups.size(), 2u);
  EXPECT_FALSE(back.groups[0].options.contains("params"));
}

TEST(OptimizerState, NumbersMayBeInAnyOrder) {
  const Value dict =
      Dict{{"state", Dict{{7, Dict{{"step", 1}}}}}, {"param_groups", List{Dict{{"params", List{9, 7}}}}}};
  const OptimizerState state = from(dict);
  EXPECT_TRUE(state.parameters[0].empty());
  EXPECT_EQ(state.parameters[1].size(), 1u);
}

TEST(OptimizerState, SaysWhatDoesNotFit) {
  const auto refusal = [](Dict states, List numbers) {
    const Value dict = Dict{{"state", std::move(states)}, {"param_groups", List{Dict{{"params", std::move(numbers)}}}}};
    return error_of<DataError>([&] { from(dict); });
  };
  EXPECT_EQ(refusal({}, {0, 0}), "f.pt: param_groups: parameter 0 is in two groups");
  EXPECT_EQ(refusal({{5, Dict{}}}, {0}), "f.pt: state/5: no group has such a parameter");
  EXPECT_EQ(refusal({{"conv", Dict{}}}, {0}), "f.pt: state/conv: no group has such a parameter");
  EXPECT_EQ(refusal({{0, 1}}, {0}), "f.pt: state/0: expected a dict, found a whole number");
  EXPECT_EQ(refusal({}, {"x"}), "f.pt: param_groups/0/params/0: expected a whole number, found a string");
  OptimizerState state = example();
  state.parameters.pop_back();
  EXPECT_THROW(optimizer_to_dict(state), BugError);
}

TEST(OptimizerState, ReadsPyTorchsAdamW) {
  const std::string path = fixtures() + "/checkpoints/apex_model_optimizer_amp.pt";
  const Value file = read_pt(path);
  const ValueView optimizer = ValueView(file, path)["optimizer"];
  const OptimizerState state = optimizer_from_dict(optimizer);
  ASSERT_EQ(state.parameters.size(), 6u);
  EXPECT_EQ(state.parameters[0].size(), 3u);
  EXPECT_EQ(describe(optimizer_to_dict(state)).dump(), describe(optimizer.value()).dump());
}

}  // namespace
}  // namespace lockstep::checkpoint
