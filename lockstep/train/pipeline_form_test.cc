#include "lockstep/train/pipeline_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/train/testing/tiny_recipe.h"

namespace lockstep::train {
namespace {

TEST(PipelineForm, RefusesAModelThatDoesNotSayItsLayers) {
  const testing_support::TinyRecipe recipe;
  const Model model = recipe.make_model(1, testing_support::Blobs(3));
  const std::string refusal =
      ::lockstep::testing_support::refusal<ConfigError>([&] { PipelineForm::plan(recipe, model, {2}, 2); });
  EXPECT_THAT(refusal, ::testing::HasSubstr("gives no layers (train::Model::layers)"));
}

}  // namespace
}  // namespace lockstep::train
