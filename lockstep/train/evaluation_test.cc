#include "lockstep/train/evaluation.h"

#include <gtest/gtest.h>

#include "lockstep/comm/single_communicator.h"
#include "lockstep/train/testing/tiny_recipe.h"

namespace lockstep::train {
namespace {

using testing_support::Blobs;
using testing_support::TinyRecipe;

TEST(Evaluation, CountsEverySampleOnce) {
  const TinyRecipe recipe;
  const Blobs data(50);
  const Model model = recipe.make_model(1, data);
  comm::SingleCommunicator comm;
  const auto whole = evaluate(recipe, model, data, comm, {.chunk = 50});
  const auto parts = evaluate(recipe, model, data, comm, {.chunk = 7});  // the last chunk is a short one
  EXPECT_EQ(whole.samples, 50);
  EXPECT_EQ(parts.metrics, whole.metrics);
  EXPECT_NEAR(parts.loss, whole.loss, 1e-6);
}

TEST(Evaluation, LeavesTheModuleAsItWas) {
  const TinyRecipe recipe;
  const Blobs data(10);
  const Model model = recipe.make_model(1, data);
  comm::SingleCommunicator comm;
  for (const bool training : {true, false}) {
    model.module->train(training);
    evaluate(recipe, model, data, comm, {});
    EXPECT_EQ(model.module->is_training(), training);
  }
}

}  // namespace
}  // namespace lockstep::train
