#include "lockstep/data/batch_dealer.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

TEST(BatchDealer, DealsWholeBatchesByTurns) {
  // 23 samples: batches of 4, 4, 4, 4, 4, 3.
  for (const int rank : {0, 1}) {
    const BatchDealer dealer({.samples = 23, .batch_size = 4, .ranks = 2, .rank = rank});
    ASSERT_EQ(dealer.size(), 3);
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t first = (2 * i + rank) * 4;
      EXPECT_EQ(dealer.batch(i), (Range{first, first == 20 ? 3 : 4}));
    }
    EXPECT_THROW(dealer.batch(3), BugError);
  }
}

TEST(BatchDealer, DropsAnIncompleteRound) {
  const BatchDealer four({.samples = 23, .batch_size = 4, .ranks = 4, .rank = 1});
  EXPECT_EQ(four.size(), 1) << "batches 4 and 5 are two for four ranks";
  EXPECT_EQ(four.batch(0), (Range{4, 4}));
  EXPECT_EQ(BatchDealer({.samples = 23, .batch_size = 4, .drop_last = true, .ranks = 2}).size(), 2);
  EXPECT_EQ(BatchDealer({.samples = 23, .batch_size = 4, .ranks = 8}).size(), 0);
  EXPECT_EQ(BatchDealer({.samples = 23, .batch_size = 4}).size(), 6);
}

TEST(BatchDealer, RefusesOptionsOutOfRange) {
  EXPECT_THROW(BatchDealer({.samples = -1}), ConfigError);
  EXPECT_THROW(BatchDealer({.samples = 3, .batch_size = 0}), ConfigError);
  EXPECT_THROW(BatchDealer({.samples = 3, .ranks = 2, .rank = 2}), ConfigError);
}

}  // namespace
}  // namespace lockstep::data
