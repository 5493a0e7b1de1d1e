#include "lockstep/checkpoint/conversion.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> names_of(const Dict& dict) {
  std::vector<std::string> names;
  for (const auto& [key, value] : dict) names.push_back(key_text(key));
  return names;
}

const at::Tensor kTensor = at::ones({2});

TEST(Convert, TakesTheStateDictAndNamesTheRest) {
  const Dict root{
      {"epoch", 3}, {"state_dict", Dict{{"w", kTensor}, {"mask_values", List{0, 1}}}}, {"optimizer", Dict{}}};
  const Converted converted = convert(root, {.file = "f", .weights_alone = true});
  EXPECT_THAT(names_of(converted.value), ElementsAre("w"));
  EXPECT_THAT(converted.notes, ElementsAre("took the state dict under state_dict",
                                           "left out: state_dict/mask_values, epoch, optimizer"));
}

TEST(Convert, KeepsAllOfAFileThatIsNotForWeightsAlone) {
  const Dict root{{"epoch", 3}, {"model", Dict{{"module.w", kTensor}}}};
  const Converted kept = convert(root, {.file = "f"});
  EXPECT_THAT(names_of(kept.value), ElementsAre("epoch", "model"));
  EXPECT_THAT(names_of(*kept.value.find("model")->get_if<Dict>()), ElementsAre("module.w"));
  EXPECT_THAT(kept.notes, ElementsAre("all names begin with module.; --strip-prefix module. drops it"));
  const Converted stripped = convert(root, {.file = "f", .strip_prefix = "module."});
  EXPECT_THAT(names_of(*stripped.value.find("model")->get_if<Dict>()), ElementsAre("w"));
  EXPECT_THAT(stripped.notes, ElementsAre("dropped module. from 1 names"));
}

TEST(Convert, DropsAPrefixThatIsAskedFor) {
  const Dict root{{"state_dict", Dict{{"model.w", kTensor}, {"model.b", kTensor}, {"loss.w", kTensor}}}};
  const ConvertOptions asked{.file = "f", .weights_alone = true, .strip_prefix = "model."};
  const Converted converted = convert(root, asked);
  EXPECT_THAT(names_of(converted.value), ElementsAre("w", "b"));
  EXPECT_THAT(converted.notes,
              ElementsAre("took the state dict under state_dict", "dropped model. from 2 names; left out: loss.w"));
  EXPECT_EQ(error_of<ConfigError>([&] {
              convert(Dict{{"w", kTensor}}, asked);
            }),
            "f: no name begins with model.; the first is w");
  EXPECT_THAT(error_of<ConfigError>([&] { convert(root, {.file = "f", .strip_prefix = "model."}); }),
              HasSubstr("--strip-prefix needs --weights"));
  const Dict milesials{{"module.w", kTensor}, {"mask_values", List{0, 1}}};
  const Converted whole = convert(milesials, {.file = "f", .strip_prefix = "module."});
  EXPECT_THAT(names_of(whole.value), ElementsAre("w", "mask_values"));
}

TEST(Convert, TextsAboutSafetensorsStayBesideTheWeightsAlone) {
  const Dict root{{"__metadata__", Dict{{"format", "pt"}}}, {"w", kTensor}};
  const Converted weights = convert(root, {.file = "f", .weights_alone = true});
  EXPECT_TRUE(weights.value.contains("__metadata__"));
  EXPECT_THAT(weights.notes, IsEmpty());
  const Converted whole = convert(root, {.file = "f"});
  EXPECT_THAT(names_of(whole.value), ElementsAre("w"));
  EXPECT_THAT(whole.notes, ElementsAre("left out: __metadata__"));
}

TEST(Convert, AFileWithoutAModelIsKeptWholeOrRefused) {
  const Dict gan{{"generator", Dict{{"w", kTensor}}}, {"discriminator", Dict{{"w", kTensor}}}};
  const Converted kept = convert(gan, {.file = "f"});
  EXPECT_THAT(names_of(kept.value), ElementsAre("generator", "discriminator"));
  EXPECT_THAT(kept.notes, ElementsAre("it holds no model that is known as one; all is kept as it is"));
  for (const ConvertOptions& options :
       {ConvertOptions{.file = "f", .weights_alone = true}, ConvertOptions{.file = "f", .strip_prefix = "module."}}) {
    EXPECT_THAT(error_of<DataError>([&] { convert(gan, options); }), HasSubstr("holds no model"));
  }
  EXPECT_THAT(error_of<DataError>([&] { convert(List{kTensor}, {.file = "f"}); }), HasSubstr("expected a dict"));
}

TEST(Convert, TheAverageIsTakenOrNamed) {
  const Dict root{{"model", Dict{{"w", kTensor}}}, {"ema", Dict{{"w", kTensor + 1}}}};
  const auto weight = [](const Converted& of) { return (*of.value.find("w")->get_if<at::Tensor>())[0].item<float>(); };
  const Converted own = convert(root, {.file = "f", .weights_alone = true});
  EXPECT_EQ(weight(own), 1);
  EXPECT_THAT(own.notes, ElementsAre("took the state dict under model", "left out: ema",
                                     "ema is an average of the weights, which --average takes"));
  const Converted average = convert(root, {.file = "f", .weights_alone = true, .average = true});
  EXPECT_EQ(weight(average), 2);
  EXPECT_THAT(average.notes, ElementsAre("took the state dict under ema", "left out: model"));
}

TEST(Convert, BetweenPaddleAndPyTorchLinearWeightsAreTransposed) {
  const Dict torchs{{"fc.weight", at::arange(6).reshape({2, 3})}, {"fc.bias", at::ones({2})}, {"conv.weight", kTensor}};
  const Converted there = convert(torchs, {.file = "f", .weights_alone = true, .to_paddle = true});
  EXPECT_THAT(there.notes, ElementsAre(HasSubstr("in Paddle's names and layouts; 1 weights")));
  EXPECT_EQ(there.value.find("fc.weight")->get_if<at::Tensor>()->sizes(), (std::vector<int64_t>{3, 2}));
  const Converted back = convert(there.value, {.file = "f", .from_paddle = true});
  EXPECT_TRUE(at::equal(*back.value.find("fc.weight")->get_if<at::Tensor>(), at::arange(6).reshape({2, 3})));
  EXPECT_THAT(names_of(back.value), ElementsAre("fc.weight", "fc.bias", "conv.weight"));
}

TEST(Convert, PaddlesNamesTellLinearLayersWithoutABias) {
  const at::Tensor square = at::arange(4).reshape({2, 2});
  const Dict paddles{
      {"q.weight", square},
      {"words.weight", square},
      {"StructuredToParameterName@@", Dict{{"q.weight", "linear_0.w_0"}, {"words.weight", "embedding_0.w_0"}}}};
  for (const bool weights_alone : {false, true}) {
    const Converted torchs = convert(paddles, {.file = "f", .weights_alone = weights_alone, .from_paddle = true});
    EXPECT_TRUE(at::equal(*torchs.value.find("q.weight")->get_if<at::Tensor>(), square.t()));
    EXPECT_TRUE(at::equal(*torchs.value.find("words.weight")->get_if<at::Tensor>(), square));
    EXPECT_THAT(torchs.notes, testing::Contains("two-dimensional as well, and not transposed: words.weight"));
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
