#include "lockstep/track/flat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::track {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(Flat, NamesWhatLiesWithin) {
  const Record record = {{"step", 3}, {"data", {{"wait", 0.5}}}, {"dice_per_class", {0.25, 1}}};
  EXPECT_THAT(flat(record, '/'), ElementsAre(Pair("step", 3), Pair("data/wait", 0.5), Pair("dice_per_class/0", 0.25),
                                             Pair("dice_per_class/1", 1)));
}

TEST(Flat, LeavesListsOfObjectsOut) {
  auto buckets = Record::array();
  buckets.push_back({{"bytes", 8}});
  EXPECT_THAT(flat({{"bytes", 8}, {"buckets", buckets}}, '.'), ElementsAre(Pair("bytes", 8)));
}

}  // namespace
}  // namespace lockstep::track
