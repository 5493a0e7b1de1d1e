#include "lockstep/train/one_ahead.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

// Values 1, 2, … of which the third can't be had the first time.
struct Source {
  std::unique_ptr<int> take() {
    if (taken == 2 && !std::exchange(failed, true)) throw DataError("sample 3");
    return std::make_unique<int>(++taken);
  }
  int taken = 0;
  bool failed = false;
};

TEST(OneAhead, IsOneAhead) {
  Source source;
  OneAhead<std::unique_ptr<int>> ahead([&] { return source.take(); });
  EXPECT_FALSE(ahead.has_taken());
  EXPECT_EQ(ahead.ahead(), nullptr);
  ahead.take();
  EXPECT_EQ(**ahead.ahead(), 1);
  EXPECT_EQ(*ahead.next(), 1);
  EXPECT_FALSE(ahead.has_taken());
  ahead.take();
  EXPECT_EQ(source.taken, 2);
  EXPECT_EQ(*ahead.next(), 2);
}

TEST(OneAhead, AFailureComesToWhomItConcerns) {
  Source source;
  OneAhead<std::unique_ptr<int>> ahead([&] { return source.take(); });
  ahead.take();
  ahead.next();
  ahead.take();
  const auto second = ahead.next();
  ahead.take();  // the third
  EXPECT_EQ(*second, 2);
  EXPECT_TRUE(ahead.has_taken());
  EXPECT_EQ(ahead.ahead(), nullptr);
  EXPECT_THROW(ahead.next(), DataError);
  EXPECT_FALSE(ahead.has_taken());
  ahead.take();
  EXPECT_EQ(*ahead.next(), 3) << "it may be asked for again";
}

TEST(OneAhead, AFailureThatNobodyNeedsIsNone) {
  Source source;
  OneAhead<std::unique_ptr<int>> ahead([&] { return source.take(); });
  for (int i = 0; i < 2; ++i) ahead.take(), ahead.next();
  EXPECT_NO_THROW(ahead.take());
}

}  // namespace
}  // namespace lockstep::train
