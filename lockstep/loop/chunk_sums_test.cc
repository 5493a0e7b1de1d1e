#include "lockstep/loop/chunk_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/comm/single_communicator.h"

namespace lockstep::loop {
namespace {

using ::lockstep::testing_support::refusal;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ChunkSums, AddsEveryChunkOnce) {
  comm::SingleCommunicator comm;
  std::vector<int64_t> firsts;
  const auto sums = chunk_sums(comm, 10, 4, [&](int64_t first, int64_t count) -> std::vector<double> {
    firsts.push_back(first);
    return {static_cast<double>(count), 0.5};
  });
  EXPECT_THAT(firsts, ElementsAre(0, 4, 8));
  EXPECT_THAT(sums, ElementsAre(10, 1.5));
  EXPECT_THAT(chunk_sums(comm, 0, 4, [](int64_t, int64_t) { return std::vector<double>{1}; }), ElementsAre());
}

TEST(ChunkSums, NoNumberPrintsAsNan) {
  comm::SingleCommunicator comm;
  const auto sums = chunk_sums(comm, 10, 4, [](int64_t, int64_t) { return std::vector<double>{-std::nan("")}; });
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(cat(sums[0]), "nan");
}

TEST(ChunkSums, OwnSamplesAreThoseThatAreMeasured) {
  comm::SingleCommunicator comm;
  const OwnSamples own = own_samples(comm, 10, 4);
  EXPECT_EQ(own.first, 0);
  EXPECT_EQ(own.last, 10);
  EXPECT_EQ(own_samples(comm, 0, 4).last, 0);
  EXPECT_THAT(refusal([&] { own_samples(comm, 10, 0); }), HasSubstr("chunks of 0 samples"));
}

TEST(ChunkSums, AChunkMayBeAsLargeAsANumber) {
  comm::SingleCommunicator comm;
  const auto sums = chunk_sums(comm, 7, std::numeric_limits<int64_t>::max(),
                               [](int64_t, int64_t count) { return std::vector<double>{static_cast<double>(count)}; });
  EXPECT_THAT(sums, ElementsAre(7));
  EXPECT_EQ(own_samples(comm, 7, std::numeric_limits<int64_t>::max()).last, 7);
}

// A rank that has lost the others.
class Lost final : public comm::Communicator {
 public:
  int rank() const override { return 1; }
  int size() const override { return 2; }
  const char* backend() const override { return "lost"; }
  bool shares(const at::Tensor&) const override { return false; }
  void progress() override {}
  void abort(const std::string&) noexcept override {}

 protected:
  std::shared_ptr<comm::Work> begin(comm::Call) override { throw CommError("rank 0 is gone"); }
  std::unique_ptr<comm::Communicator> group(const std::vector<int>&) override { return nullptr; }
};

TEST(ChunkSums, ARanksOwnErrorComesBeforeThatItLostTheOthers) {
  Lost comm;
  const auto damaged = [](int64_t, int64_t) -> std::vector<double> { throw DataError("sample 9 is damaged"); };
  EXPECT_THROW(chunk_sums(comm, 10, 4, damaged), DataError);
  EXPECT_THROW(chunk_sums(comm, 10, 4, [](int64_t, int64_t) { return std::vector<double>{1}; }), CommError);
}

TEST(ChunkSums, RefusesChunksWithoutSamples) {
  comm::SingleCommunicator comm;
  const auto one = [](int64_t, int64_t) { return std::vector<double>{1}; };
  for (const int64_t chunk : {0, -4}) {
    EXPECT_THAT(refusal([&] { chunk_sums(comm, 10, chunk, one); }), HasSubstr(cat("chunks of ", chunk, " samples")));
  }
}

// A network of 256 classes has two for each.
TEST(ChunkSums, MayBeMany) {
  comm::SingleCommunicator comm;
  const auto many = [](int64_t, int64_t) { return std::vector<double>(513, 1); };
  EXPECT_EQ(chunk_sums(comm, 10, 4, many), std::vector<double>(513, 3));
}

TEST(ChunkSums, MayBeNoneForAChunkThatCantBeRead) {
  comm::SingleCommunicator comm;
  const auto some = [](int64_t first, int64_t) { return std::vector<double>(first == 4 ? 0 : 2, 1); };
  EXPECT_THAT(chunk_sums(comm, 10, 4, some), ElementsAre(2, 2));
  const auto none = [](int64_t, int64_t) { return std::vector<double>(); };
  EXPECT_TRUE(chunk_sums(comm, 10, 4, none).empty());
}

TEST(ChunkSums, RefusesUnequalSums) {
  comm::SingleCommunicator comm;
  const auto unequal = [](int64_t first, int64_t) { return std::vector<double>(first == 0 ? 2 : 3); };
  EXPECT_THAT(refusal([&] { chunk_sums(comm, 10, 4, unequal); }),
              HasSubstr("2 sums for samples 0 to 3, and 3 for those from 4 on"));
}

}  // namespace
}  // namespace lockstep::loop
