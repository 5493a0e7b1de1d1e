#include "lockstep/train/trial_evaluation.h"

#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/train/testing/tiny_parts.h"
#include "lockstep/train/testing/tiny_recipe.h"

namespace lockstep::train {
namespace {

using ::lockstep::testing_support::refusal;
using ::testing::HasSubstr;
using testing_support::Blobs;
using testing_support::parts_of;

struct NamedBadly : testing_support::TinyRecipe {
  std::string best_by() const override { return "acuracy"; }
};

struct Measured : testing_support::TinyRecipe {
  explicit Measured(std::function<void(const data::Batch&)> given) : act(std::move(given)) {}
  std::vector<double> measure(const at::Tensor& output, const data::Batch& batch) const override {
    act(batch);
    return TinyRecipe::measure(output, batch);
  }
  std::function<void(const data::Batch&)> act;
};

TEST(TryEvaluation, RefusesABestByThatNamesNoMetric) {
  const Parts parts = parts_of(std::make_shared<NamedBadly>());
  EXPECT_EQ(refusal([&] { try_evaluation(parts); }),
            "recipe tiny: best_by() is \"acuracy\", which is no number of an evaluation; there are loss, accuracy");
}

TEST(TryEvaluation, FindsAMeasureThatThrows) {
  const Parts own = parts_of(std::make_shared<Measured>([](const data::Batch&) { throw ConfigError("no masks"); }));
  EXPECT_THAT(refusal([&] { try_evaluation(own); }),
              "recipe tiny: its evaluation fails, tried on one test sample before the run: no masks");
  const Parts libtorchs =
      parts_of(std::make_shared<Measured>([](const data::Batch& batch) { batch.data().view({3}); }));
  try {
    try_evaluation(libtorchs);
    FAIL() << "not refused";
  } catch (const BugError& error) {
    EXPECT_THAT(error.what(), HasSubstr("recipe tiny: its evaluation fails"));
    EXPECT_THAT(error.what(), HasSubstr("shape '[3]' is invalid"));
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
  }
}

TEST(TryEvaluation, TakesOneSampleInEvalModeWithoutAGraph) {
  std::vector<int64_t> sizes;
  bool trains = true, has_graph = true;
  const torch::nn::Module* module = nullptr;
  Parts parts = parts_of(std::make_shared<Measured>([&](const data::Batch& batch) {
    sizes.push_back(batch.size());
    trains = module->is_training();
    has_graph = c10::GradMode::is_enabled();
  }));
  module = parts.model.module.get();
  try_evaluation(parts);
  EXPECT_EQ(sizes, std::vector<int64_t>{1});
  EXPECT_FALSE(trains);
  EXPECT_FALSE(has_graph);
  EXPECT_TRUE(module->is_training());
}

TEST(TryEvaluation, LeavesTheGeneratorAsItWas) {
  Parts parts = parts_of(std::make_shared<Measured>([](const data::Batch&) { at::rand({100}); }));
  at::manual_seed(5);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(5);
  try_evaluation(parts);
  EXPECT_TRUE(at::equal(at::rand({4}), expected));
}

TEST(TryEvaluation, WantsTestData) {
  Parts parts = parts_of(std::make_shared<testing_support::TinyRecipe>());
  parts.data.test = nullptr;
  EXPECT_THAT(refusal([&] { try_evaluation(parts); }), HasSubstr("open_data() gives no test data"));
  parts.data.test = std::make_shared<Blobs>(0);
  EXPECT_THROW(try_evaluation(parts), Error);
}

}  // namespace
}  // namespace lockstep::train
