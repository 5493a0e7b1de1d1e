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

TEST(EvaluationSchedule, TestDataAreForTheEndWhereThereIsAValidationPart) {
  const EvaluationSchedule held_out{.every = 5, .total_steps = 10, .has_validation = true};
  EXPECT_EQ(held_out.split(5), Split::kValidation);
  EXPECT_EQ(held_out.split(10), Split::kTest);
  const EvaluationSchedule none{.every = 5, .total_steps = 10};
  EXPECT_EQ(none.split(5), Split::kTest);
}

TEST(EvaluationSchedule, APlateauGoesByTheSameDataAtEveryInterval) {
  const EvaluationSchedule held_out{.every = 5, .total_steps = 10, .has_validation = true};
  EXPECT_TRUE(held_out.plateau_due(5));
  EXPECT_TRUE(held_out.plateau_due(10));  // as it would be in a longer run
  EXPECT_EQ(held_out.plateau_split(), Split::kValidation);
  const EvaluationSchedule uneven{.every = 4, .total_steps = 10};
  EXPECT_FALSE(uneven.plateau_due(10));
}

}  // namespace
}  // namespace lockstep::train
