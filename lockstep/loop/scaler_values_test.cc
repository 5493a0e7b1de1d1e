#include "lockstep/loop/scaler_values.h"

#include <gtest/gtest.h>

namespace lockstep::loop {
namespace {

using checkpoint::Value;
using checkpoint::ValueView;

TEST(ScalerValues, ADynamicScaleContinues) {
  amp::LossScaler scaler({.enabled = true, .init_scale = 1024}), resumed({.enabled = true});
  scaler.update(/*found_inf=*/true);
  scaler.update(false);
  const Value saved = scaler_to_dict(scaler);
  scaler_from_dict(ValueView(saved, "run.pt"), resumed);
  EXPECT_EQ(resumed.state(), scaler.state());
  EXPECT_EQ(resumed.scale(), 512);
}

TEST(ScalerValues, AStaticScaleIsTheOptionsAndADisabledScalerHasNone) {
  amp::LossScaler fixed({.enabled = true, .dynamic = false, .init_scale = 8}), disabled;
  const Value saved = scaler_to_dict(amp::LossScaler({.enabled = true, .init_scale = 1024}));
  scaler_from_dict(ValueView(saved, "run.pt"), fixed);
  EXPECT_EQ(fixed.scale(), 8);
  const Value none = scaler_to_dict(disabled);
  EXPECT_TRUE(none.get_if<checkpoint::Dict>()->empty());
  scaler_from_dict(ValueView(none, "run.pt"), fixed);
  EXPECT_EQ(fixed.scale(), 8);
}

}  // namespace
}  // namespace lockstep::loop
