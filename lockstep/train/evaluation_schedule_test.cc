#include "lockstep/train/evaluation_schedule.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

using Split = EvaluationSchedule::Split;

TEST(EvaluationSchedule, IsDueAtEveryIntervalAndAtTheEnd) {
  const EvaluationSchedule schedule{.every = 4, .total_steps = 10};
  for (const int64_t step : {4, 8, 10}) EXPECT_TRUE(schedule.due(step)) << step;
  for (const int64_t step : {1, 3, 5, 9}) EXPECT_FALSE(schedule.due(step)) << step;
}

TEST(EvaluationSchedule, WithoutAnIntervalTheEndAloneIsDue) {
  const EvaluationSchedule schedule{.every = 0, .total_steps = 10};
  EXPECT_FALSE(schedule.due(5));
  EXPECT_TRUE(schedule.due(10));
  EXPECT_FALSE(schedule.plateau_due(10));
}

TEST(EvaluationSchedule, GoesByTheValidationPartWhereThereIsOne) {
  const EvaluationSchedule held_out{.every = 5, .total_steps = 10, .has_validation = true};
  EXPECT_EQ(held_out.split(), Split::kValidation);
  const EvaluationSchedule none{.every = 5, .total_steps = 10};
  EXPECT_EQ(none.split(), Split::kTest);
}

TEST(EvaluationSchedule, APlateauGoesByEveryInterval) {
  const EvaluationSchedule held_out{.every = 5, .total_steps = 10, .has_validation = true};
  EXPECT_TRUE(held_out.plateau_due(5));
  EXPECT_TRUE(held_out.plateau_due(10));  // as it would be in a longer run
  const EvaluationSchedule uneven{.every = 4, .total_steps = 10};
  EXPECT_FALSE(uneven.plateau_due(10));
}

}  // namespace
}  // namespace lockstep::train
