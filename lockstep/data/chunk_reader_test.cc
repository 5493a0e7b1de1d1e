#include "lockstep/data/chunk_reader.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/data/read_batch.h"
#include "lockstep/data/tensor_dataset.h"

namespace lockstep::data {
namespace {

class ChunkReaderTest : public ::testing::TestWithParam<int> {
 protected:
  const TensorDataset data_{at::arange(60, at::kFloat).view({20, 3}), at::arange(20)};
};
INSTANTIATE_TEST_SUITE_P(Workers, ChunkReaderTest, ::testing::Values(0, 1, 3));

TEST_P(ChunkReaderTest, GivesAllSamplesInOrder) {
  ChunkReader reader(data_, 4, 18, 5, GetParam());
  for (const auto& [first, count] : {std::pair(4, 5), std::pair(9, 5), std::pair(14, 4)}) {
    std::vector<int64_t> indices(static_cast<size_t>(count));
    std::iota(indices.begin(), indices.end(), first);
    const Batch got = reader.next(), wanted = read_batch(data_, indices);
    EXPECT_TRUE(at::equal(got.data(), wanted.data()));
    EXPECT_TRUE(at::equal(got.target(), wanted.target()));
  }
  EXPECT_THROW(reader.next(), BugError);
}

TEST_P(ChunkReaderTest, TakesChunksLargerThanTheData) {
  for (const int64_t chunk : {int64_t{1000}, std::numeric_limits<int64_t>::max()}) {
    ChunkReader reader(data_, 3, 20, chunk, GetParam());
    EXPECT_EQ(reader.next().size(), 17);
    EXPECT_THROW(reader.next(), BugError);
  }
}

TEST(ChunkReader, BoundsItsWorkers) {
  const TensorDataset data(at::arange(6));
  EXPECT_THROW(ChunkReader(data, 0, 6, 5, 1000), ConfigError);
}

TEST_P(ChunkReaderTest, MayBeDroppedBeforeItsEnd) {
  ChunkReader reader(data_, 0, 20, 2, GetParam());
  EXPECT_EQ(reader.next().size(), 2);
}

TEST_P(ChunkReaderTest, OwnsTheDataSetWhereSomebodyDoes) {
  auto owned = std::make_shared<const TensorDataset>(at::arange(6));
  const std::weak_ptr<const TensorDataset> lives = owned;
  {
    ChunkReader reader(*owned, 0, 6, 4, GetParam());
    owned.reset();
    EXPECT_FALSE(lives.expired());
    EXPECT_EQ(reader.next().size(), 4);
  }
  EXPECT_TRUE(lives.expired());
}

}  // namespace
}  // namespace lockstep::data
