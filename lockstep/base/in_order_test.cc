#include "lockstep/base/in_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <stdexcept>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

struct Square {
  int64_t operator()(int64_t number) const {
    if (number == 13) throw std::runtime_error("13 brings bad luck");
    return number * number;
  }
};
constexpr auto make_square = [] { return Square{}; };

TEST(InOrder, ResultsComeInOrderAtAnyNumberOfThreads) {
  for (const int threads : {0, 1, 2, 7}) {
    std::vector<int64_t> taken;
    in_order<int64_t>(13, threads, make_square, [&](int64_t index, Outcome<int64_t> outcome) {
      EXPECT_EQ(index, std::ssize(taken));
      taken.push_back(std::move(outcome).get());
    });
    ASSERT_EQ(taken.size(), 13u) << threads;
    for (int64_t i = 0; i < 13; ++i) EXPECT_EQ(taken[static_cast<size_t>(i)], i * i);
  }
}

TEST(InOrder, AnExceptionComesInItsPlace) {
  for (const int threads : {1, 3}) {
    int64_t bad = 0, good = 0;
    in_order<int64_t>(20, threads, make_square, [&](int64_t index, Outcome<int64_t> outcome) {
      try {
        std::move(outcome).get();
        ++good;
      } catch (const std::runtime_error&) {
        bad = index;
      }
    });
    EXPECT_EQ(bad, 13);
    EXPECT_EQ(good, 19);
  }
}

TEST(InOrder, WhatTheTakerThrowsEndsTheWork) {
  std::atomic<int64_t> made = 0;
  const auto make_counter = [&] {
    return [&](int64_t number) {
      ++made;
      return number;
    };
  };
  const auto stop = [](int64_t index, Outcome<int64_t> /*outcome*/) {
    if (index == 5) throw std::runtime_error("enough");
  };
  EXPECT_THROW(in_order<int64_t>(1'000'000, 2, make_counter, stop), std::runtime_error);
  EXPECT_LT(made, 100) << "few results wait to be taken";
}

TEST(InOrder, AWorkerThatCannotBeMadeIsAnErrorOfEachResult) {
  const auto make = []() -> Square { throw std::runtime_error("no memory"); };
  EXPECT_THROW(in_order<int64_t>(3, 2, make, [](int64_t, Outcome<int64_t> outcome) { std::move(outcome).get(); }),
               std::runtime_error);
}

// While it lives, no thread starts: each would get a stack of all addresses that there are.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&usual_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, size_t{1} << 47);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;
  ~NoThreads() {
    pthread_setattr_default_np(&usual_);
    pthread_attr_destroy(&usual_);
  }

 private:
  pthread_attr_t usual_{};
};

TEST(InOrder, ASystemWithoutMoreThreadsIsAnErrorWithAdvice) {
  using testing::AllOf, testing::HasSubstr;
  const NoThreads none;
  const auto run = [] { in_order<int64_t>(20, 7, make_square, [](int64_t, Outcome<int64_t>) { FAIL(); }); };
  EXPECT_THAT(run, testing::ThrowsMessage<IoError>(
                       AllOf(HasSubstr("can't start 7 threads to read data: "), HasSubstr("; ask for fewer workers"))));
}

TEST(InOrder, NothingIsDoneForNothing) {
  in_order<int64_t>(0, 4, make_square, [](int64_t, Outcome<int64_t>) { FAIL(); });
}

}  // namespace
}  // namespace lockstep
