#include "lockstep/train/evaluator.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "lockstep/train/testing/tiny_parts.h"
#include "lockstep/train/testing/tiny_recipe.h"

namespace lockstep::train {
namespace {

class EvaluatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    parts_ = testing_support::parts_of(std::make_shared<testing_support::TinyRecipe>());
    parts_.state.best = std::numeric_limits<double>::lowest();
    parts_.plan.eval_every = 5;
    parts_.plan.total_steps = 10;
  }

  Parts parts_;
  Logger log_ = Logger::from_environment("");
};

TEST_F(EvaluatorTest, EvaluatesAStepOnceAndKeepsTheBest) {
  const auto form = make_form(parts_, log_);
  Evaluator evaluator(parts_, *form);
  parts_.state.step = 5;
  EXPECT_TRUE(evaluator.due());
  EXPECT_TRUE(evaluator.evaluate());
  EXPECT_FALSE(evaluator.evaluate());
  EXPECT_TRUE(evaluator.is_best());
  EXPECT_EQ(parts_.state.best, evaluator.last().metrics["accuracy"].get<double>());
  EXPECT_EQ(evaluator.last().samples, 50);
  parts_.state.step = 6;
  EXPECT_FALSE(evaluator.is_best());
  parts_.state.best = 2;  // no accuracy is better
  EXPECT_TRUE(evaluator.evaluate());
  EXPECT_FALSE(evaluator.is_best());
}

struct ByLoss : testing_support::TinyRecipe {
  std::string best_by() const override { return "loss"; }
};

TEST_F(EvaluatorTest, ABestThatWasNotSavedIsNone) {
  parts_.recipe = std::make_shared<ByLoss>();
  parts_.state.best = 100;
  const auto form = make_form(parts_, log_);
  Evaluator evaluator(parts_, *form);
  std::vector<double> losses;
  for (const int64_t step : {5, 6, 7}) {
    parts_.state.step = step;
    evaluator.evaluate();
    losses.push_back(evaluator.last().loss);
    evaluator.settle({});  // nothing has become of it yet
  }
  ASSERT_EQ(losses[0], losses[2]);
  EXPECT_EQ(parts_.state.best, losses[0]) << "of step 5, for the others are no better";
  evaluator.settle({.saved = -1, .lost = 5});
  EXPECT_EQ(parts_.state.best, 100);
  parts_.state.step = 8;
  evaluator.evaluate();
  EXPECT_TRUE(evaluator.is_best()) << "as good as the one that was lost";
  evaluator.settle({.saved = 8, .lost = 5});
  EXPECT_TRUE(evaluator.is_best());
  EXPECT_EQ(parts_.state.best, losses[0]);
}

// As a resumed run whose file is the best so far, on a disk that takes no more.
TEST_F(EvaluatorTest, TheBestThatARunBeganWithStays) {
  parts_.recipe = std::make_shared<ByLoss>();
  parts_.state.best = 100;
  parts_.state.step = 4;
  parts_.state.is_best = true;
  const auto form = make_form(parts_, log_);
  Evaluator evaluator(parts_, *form);
  parts_.state.step = 5;
  evaluator.evaluate();
  ASSERT_TRUE(evaluator.is_best());
  evaluator.settle({.saved = -1, .lost = 5});
  EXPECT_EQ(parts_.state.best, 100);
  EXPECT_FALSE(evaluator.step_is_best());
  parts_.state.step = 4;
  EXPECT_TRUE(evaluator.step_is_best()) << "it is on the disk";
}

// Between two batches the rank has made progress, and says at what.
struct Watched : testing_support::TinyRecipe {
  std::vector<double> measure(const at::Tensor& output, const data::Batch& batch) const override {
    beats.push_back(self->beat_ns.exchange(0));
    doing = self->doing.get();
    return TinyRecipe::measure(output, batch);
  }
  BoardRank* self = nullptr;
  mutable std::vector<int64_t> beats;
  mutable std::string doing;
};

TEST_F(EvaluatorTest, OneThatLastsLongIsWaitedFor) {
  const auto recipe = std::make_shared<Watched>();
  recipe->self = &parts_.world->self();
  parts_.recipe = recipe;
  parts_.plan.eval_batch = 10;  // of 50
  parts_.state.step = 5;
  const auto form = make_form(parts_, log_);
  Evaluator(parts_, *form).evaluate();
  ASSERT_GE(recipe->beats.size(), 5u);
  for (size_t i = 1; i < recipe->beats.size(); ++i) EXPECT_GT(recipe->beats[i], 0) << i;
  EXPECT_EQ(recipe->doing, "evaluating at step 5");
}

TEST_F(EvaluatorTest, LessIsBetterWhereTheRecipeSaysSo) {
  parts_.recipe = std::make_shared<ByLoss>();
  const auto form = make_form(parts_, log_);
  Evaluator evaluator(parts_, *form);
  parts_.state.best = 100;
  parts_.state.step = 5;
  EXPECT_TRUE(evaluator.evaluate());
  EXPECT_TRUE(evaluator.is_best());
  EXPECT_EQ(parts_.state.best, evaluator.last().loss);
  parts_.state.best = 0;  // no loss is better
  parts_.state.step = 6;
  EXPECT_TRUE(evaluator.evaluate());
  EXPECT_FALSE(evaluator.is_best());
}

TEST_F(EvaluatorTest, TrainingGoesOnFromTheWeightsAndNotFromTheirAverages) {
  parts_.optimizer->keep_average(0.5);
  const at::Tensor weight = parts_.model.module->parameters()[0];
  for (int step = 0; step < 2; ++step) {
    weight.mutable_grad() = at::ones_like(weight);
    parts_.optimizer->update({});
  }
  const at::Tensor before = weight.detach().clone();
  const auto form = make_form(parts_, log_);
  Evaluator evaluator(parts_, *form);
  parts_.state.step = 5;
  EXPECT_TRUE(evaluator.evaluate());
  EXPECT_TRUE(at::equal(weight, before));
}

// A checkpoint of that moment replaces the step's own file when the run goes on.
TEST_F(EvaluatorTest, AStepStaysTheBestWhereItsTestEvaluationIsBrokenOff) {
  parts_.data.validation = std::make_shared<testing_support::Blobs>(20);
  const auto form = make_form(parts_, log_);
  bool stop = false;
  Evaluator evaluator(parts_, *form, [&stop] { return stop; });
  parts_.state.step = 10;
  EXPECT_TRUE(evaluator.evaluate());
  EXPECT_TRUE(evaluator.is_best());
  stop = true;
  EXPECT_THROW(evaluator.evaluate(/*ends=*/true), Error);
  EXPECT_TRUE(evaluator.step_is_best());
  EXPECT_FALSE(evaluator.is_best()) << "the last evaluation was of other data";
  parts_.state.is_best = true;  // as a resume finds it
  EXPECT_TRUE(Evaluator(parts_, *form).step_is_best());
}

TEST_F(EvaluatorTest, ThePlateauObservesTheValidationPartAtTheEndToo) {
  parts_.data.validation = std::make_shared<testing_support::Blobs>(20);
  parts_.state.scheduler.options.shape = schedule::PlateauLr{};
  const auto form = make_form(parts_, log_);
  Evaluator evaluator(parts_, *form);
  parts_.state.step = 4;
  evaluator.observe_plateau();
  EXPECT_EQ(parts_.state.scheduler.plateau.metrics, 0);
  parts_.state.step = 10;
  evaluator.evaluate();
  EXPECT_FALSE(evaluator.last_was_test());
  EXPECT_EQ(evaluator.last().samples, 20);
  evaluator.observe_plateau();
  EXPECT_EQ(parts_.state.scheduler.plateau.metrics, 1);
}

TEST_F(EvaluatorTest, TestDataDoNotCompeteWithTheValidationPart) {
  parts_.data.validation = std::make_shared<testing_support::Blobs>(20);
  const auto form = make_form(parts_, log_);
  Evaluator evaluator(parts_, *form);
  parts_.state.step = 10;
  EXPECT_TRUE(evaluator.evaluate());
  EXPECT_TRUE(evaluator.is_best());
  const double best = parts_.state.best;
  parts_.state.best = -1;  // any accuracy is better
  EXPECT_TRUE(evaluator.evaluate(/*ends=*/true));
  EXPECT_TRUE(evaluator.last_was_test());
  EXPECT_EQ(parts_.state.best, -1);
  EXPECT_FALSE(evaluator.is_best()) << "of the validation part it was: " << best;
}

TEST_F(EvaluatorTest, OnlyIntervalsCountForAnEarlyStop) {
  const auto form = make_form(parts_, log_);
  Evaluator evaluator(parts_, *form);
  parts_.plan.total_steps = 12;
  parts_.state.best_at_interval = -1;  // any accuracy is better
  parts_.state.since_best = 3;
  parts_.state.step = 12;
  EXPECT_TRUE(evaluator.evaluate());
  EXPECT_TRUE(evaluator.is_best());
  EXPECT_EQ(parts_.state.since_best, 3) << "a longer run does not evaluate here";
  parts_.state.step = 15;
  EXPECT_TRUE(evaluator.evaluate());
  EXPECT_EQ(parts_.state.since_best, 0) << "it is no better than at the run's end, but than at any interval";
  parts_.state.step = 20;
  EXPECT_TRUE(evaluator.evaluate());
  EXPECT_EQ(parts_.state.since_best, 1);
}

}  // namespace
}  // namespace lockstep::train
