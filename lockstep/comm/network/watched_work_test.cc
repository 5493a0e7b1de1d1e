#include "lockstep/comm/network/watched_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/comm/network/testing/local_mesh.h"

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// A work that is never done; one that fails throws an error at every call.
class Idle final : public Work {
 public:
  explicit Idle(bool fails = false) : fails_(fails) {}
  bool done() override { return wait_for(std::chrono::nanoseconds(0)); }
  bool wait_for(std::chrono::nanoseconds time) override {
    if (fails_) throw CommError("a neighbour died");
    std::this_thread::sleep_for(time);
    return false;
  }
  void wait() override {}
  std::chrono::nanoseconds elapsed() const override { return {}; }

 private:
  bool fails_;
};

WatchedCall call_of(int64_t elements, std::chrono::nanoseconds timeout) {
  WatchedCall call{.group = {"world", {0, 1}}, .number = 1, .label = "all_reduce", .timeout = timeout};
  call.signature.kind = OpKind::kAllReduce;
  call.signature.elements = elements;
  return call;
}

testing::LocalWorld two_ranks() { return {.size = 2, .period = milliseconds(50)}; }

// For a call that does not end in a DesyncError.
void tells_nothing(const std::string& difference) { ADD_FAILURE() << difference; }

TEST(WatchedWork, RanksThatCallDifferentThingsLearnItOnWhateverTheyWait) {
  two_ranks().run_networks([](const Network& network, int rank) {
    std::string told;
    WatchedWork work(std::make_shared<Idle>(), network.watch, call_of(rank == 0 ? 10 : 20, std::chrono::seconds(20)),
                     [&](const std::string& difference) { told = difference; });
    try {
      work.wait();
      ADD_FAILURE() << "no error";
    } catch (const DesyncError& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 0 called all_reduce #0 [10]"));
      EXPECT_THAT(error.what(), HasSubstr("rank 1 called all_reduce #0 [20]"));
      EXPECT_EQ(told, error.what()) << "the node's other ranks are to throw the same";
    }
  });
}

TEST(WatchedWork, AnErrorOfTheWorkIsPassedOn) {
  two_ranks().run_networks([](const Network& network, int) {
    WatchedWork work(std::make_shared<Idle>(/*fails=*/true), network.watch, call_of(10, std::chrono::seconds(20)),
                     tells_nothing);
    EXPECT_THROW(work.done(), CommError);
  });
}

TEST(WatchedWork, TheCallsTimeoutEndsAWait) {
  two_ranks().run_networks([](const Network& network, int rank) {
    WatchedWork work(std::make_shared<Idle>(), network.watch, call_of(10, milliseconds(rank == 0 ? 400 : 20'000)),
                     tells_nothing);
    EXPECT_FALSE(work.wait_for(milliseconds(10)));
    try {
      work.wait();
      ADD_FAILURE() << "no error";
    } catch (const CommError& error) {
      EXPECT_THAT(error.what(), HasSubstr("all_reduce, call #0: waited"));
    }
  });
}

}  // namespace
}  // namespace lockstep::comm
