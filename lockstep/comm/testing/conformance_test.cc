#include "lockstep/comm/testing/conformance.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "lockstep/comm/single_communicator.h"

namespace lockstep::comm::testing {
namespace {

// A communicator that is wrong by one in the calls of one kind.
class Faulty final : public Communicator {
 public:
  explicit Faulty(OpKind kind) : kind_(kind) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  const char* backend() const override { return "faulty"; }
  bool shares(const at::Tensor&) const override { return true; }
  void progress() override {}
  void abort(const std::string&) noexcept override {}

 protected:
  std::shared_ptr<Work> begin(Call call) override {
    const bool spoils = call.kind == kind_;
    const at::Tensor output = call.kind == OpKind::kFold ? call.tensors.at(0) : call.output;
    auto work = single_.start(std::move(call));
    if (spoils && output.numel() > 0 && output.scalar_type() == at::kFloat) output.view({-1})[0].add_(1);
    return work;
  }
  std::unique_ptr<Communicator> group(const std::vector<int>& members) override {
    return members.empty() ? nullptr : std::make_unique<Faulty>(kind_);
  }

 private:
  OpKind kind_;
  SingleCommunicator single_;
};

int failures_of(OpKind kind) {
  ::testing::TestPartResultArray failures;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &failures);
    Faulty comm(kind);
    conformance(comm);
  }
  return failures.size();
}

TEST(ConformanceChecks, FindOneWrongValueInAnyCall) {
  EXPECT_EQ(failures_of(OpKind::kBarrier), 0);  // which has no values
  for (const auto kind :
       {OpKind::kFold, OpKind::kAllReduce, OpKind::kReduce, OpKind::kBroadcast, OpKind::kAllGather,
        OpKind::kReduceScatter, OpKind::kAllToAll, OpKind::kGather, OpKind::kScatter, OpKind::kReceive}) {
    EXPECT_GT(failures_of(kind), 0) << name_of(kind);
  }
}

}  // namespace
}  // namespace lockstep::comm::testing
