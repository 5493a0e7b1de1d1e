#include "lockstep/checkpoint/found_state.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::checkpoint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const at::Tensor kWeight = at::ones({1});
const Dict kModel{{"w", kWeight}};
const Dict kAverage{{"w", kWeight}, {"b", kWeight}};

TEST(FindState, WhereFilesKeepIt) {
  for (const char* key : {"model", "model_state_dict", "state_dict", "net", "module", "params"}) {
    const FoundState found = find_state(Dict{{"epoch", 1}, {key, kModel}}, "f");
    EXPECT_EQ(found.state.size(), 1u) << key;
    EXPECT_EQ(found.name, key);
    EXPECT_THAT(found.others, IsEmpty());
  }
  EXPECT_EQ(find_state(Dict{{"model", Dict{{"name", "resnet"}}}, {"state_dict", kModel}}, "f").name, "state_dict");
  EXPECT_EQ(find_model_state(Dict{{"w", kWeight}, {"mask_values", List{0, 1}}}, "f").size(), 1u);
  EXPECT_EQ(find_model_state(Dict{{"model", Dict{{"w", kWeight}, {"mask_values", List{0, 1}}}}}, "f").size(), 1u);
  EXPECT_THROW(find_model_state(List{kWeight}, "f"), DataError);
  EXPECT_THROW(find_model_state(Dict{{"epoch", 1}}, "f"), DataError);
  EXPECT_FALSE(search_state(List{kWeight}));
  EXPECT_FALSE(search_state(Dict{{"epoch", 1}}));
}

TEST(FindState, TheAverageWhereItIsAskedFor) {
  EXPECT_EQ(find_state(Dict{{"model", kModel}, {"ema", kAverage}}, "f", Average::kWhereThere).name, "ema");
  EXPECT_EQ(find_state(Dict{{"model", kModel}, {"ema", kAverage}}, "f").name, "model");
  EXPECT_EQ(find_state(Dict{{"model", kModel}, {"ema", 1}}, "f", Average::kWhereThere).name, "model");
  EXPECT_EQ(
      find_state(Dict{{"state_dict", kModel}, {"state_dict_ema", kAverage}}, "f", Average::kWhereThere).state.size(),
      2u);
  EXPECT_EQ(find_state(Dict{{"model", kModel}}, "f", Average::kWhereThere).name, "model");
  EXPECT_EQ(find_state(kModel, "f", Average::kWhereThere).name, "");
  EXPECT_EQ(find_state(Dict{{"model", kModel}, {"ema", kAverage}}, "f", Average::kOn).name, "ema");
  for (const Dict& none : {Dict{{"model", kModel}}, kModel}) {
    EXPECT_THROW(find_state(none, "f", Average::kOn), ConfigError);
  }
}

TEST(FindState, AnAverageIsNotPassedOver) {
  const Dict nested{{"model", kModel}, {"ema", Dict{{"shadow", kAverage}, {"decay", 0.9}}}};
  EXPECT_THROW(find_state(nested, "f", Average::kWhereThere), DataError);
  EXPECT_EQ(find_state(nested, "f").name, "model");
  EXPECT_EQ(find_state(Dict{{"model", kModel}, {"ema", Dict{}}}, "f", Average::kWhereThere).name, "model");
  EXPECT_THAT(testing_support::error_of<ConfigError>([] {
                find_state(Dict{{"ema", kAverage}, {"epoch", 1}}, "f");
              }),
              testing::HasSubstr("f: holds an average of the weights alone, ema, which --load-average on"));
}

TEST(FindState, WhatElseTheFileHasIsNamed) {
  const Dict all{{"state_dict", kModel}, {"model", kModel}, {"state_dict_ema", kAverage}};
  EXPECT_THAT(find_state(all, "f").others, ElementsAre("state_dict", "state_dict_ema"));
  EXPECT_THAT(find_state(all, "f", Average::kWhereThere).others, ElementsAre("model", "state_dict"));
  EXPECT_THAT(find_state(Dict{{"w", kWeight}, {"ema", kAverage}}, "f").others, ElementsAre("ema"));
}

}  // namespace
}  // namespace lockstep::checkpoint
