#include "lockstep/compat/torch/data_loader.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/data/tensor_dataset.h"

namespace lockstep::pytorch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing_support::refusal;

std::shared_ptr<const data::Dataset> numbers(int64_t count) {
  return std::make_shared<data::TensorDataset>(at::arange(count), at::arange(count) % 3);
}

std::vector<int64_t> list(const at::Tensor& values) {
  return {values.const_data_ptr<int64_t>(), values.const_data_ptr<int64_t>() + values.numel()};
}

// The samples of an epoch, batch by batch.
std::vector<std::vector<int64_t>> epoch_of(DataLoader& loader) {
  std::vector<std::vector<int64_t>> batches;
  for (const data::Batch& batch : loader) batches.push_back(list(batch.data()));
  return batches;
}

std::vector<int64_t> joined(const std::vector<std::vector<int64_t>>& batches) {
  std::vector<int64_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

TEST(DataLoader, GivesBatchesInOrder) {
  for (const int workers : {0, 2}) {
    DataLoader loader(numbers(7), {.batch_size = 3, .num_workers = workers});
    EXPECT_EQ(loader.size(), 3);
    for (int epoch = 0; epoch < 2; ++epoch) {
      EXPECT_THAT(epoch_of(loader), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5), ElementsAre(6)));
    }
  }
  DataLoader whole(numbers(7), {.batch_size = 3, .drop_last = true});
  EXPECT_EQ(whole.size(), 2);
  EXPECT_THAT(epoch_of(whole), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5)));
  DataLoader none(numbers(2), {.batch_size = 3, .drop_last = true});
  EXPECT_THAT(epoch_of(none), IsEmpty()) << "as in PyTorch";
}

TEST(DataLoader, ShufflesEachEpochByTheSeed) {
  DataLoader loader(numbers(20), {.batch_size = 6, .shuffle = true, .num_workers = 2, .seed = 3});
  DataLoader same(numbers(20), {.batch_size = 6, .shuffle = true, .seed = 3});
  const auto first = epoch_of(loader), second = epoch_of(loader);
  EXPECT_EQ(epoch_of(same), first);
  EXPECT_EQ(epoch_of(same), second);
  EXPECT_NE(first, second);
  std::vector<int64_t> all = joined(first), wanted(20);
  std::sort(all.begin(), all.end());
  std::iota(wanted.begin(), wanted.end(), 0);
  EXPECT_EQ(all, wanted);
}

TEST(DataLoader, TakesADistributedSamplersSamples) {
  for (const int rank : {0, 1, 2}) {
    DistributedSampler sampler(10, 3, rank, {.seed = 5});
    DataLoader loader(numbers(10), {.batch_size = 3, .sampler = &sampler});
    EXPECT_EQ(loader.size(), 2);
    for (const uint32_t epoch : {0u, 1u, 4u}) {
      sampler.set_epoch(epoch);
      EXPECT_EQ(joined(epoch_of(loader)), sampler.indices()) << rank << ' ' << epoch;
    }
  }
  DistributedSampler last(2, 3, 2, {.pad = false});
  DataLoader empty(numbers(2), {.sampler = &last});
  EXPECT_EQ(empty.size(), 0);
  EXPECT_THAT(epoch_of(empty), IsEmpty());
}

TEST(DataLoader, TakesAnOrder) {
  DataLoader loader(numbers(4), {.batch_size = 8, .order = data::weighted({0, 1, 0, 0}, 20, 1)});
  EXPECT_EQ(loader.size(), 3);
  EXPECT_EQ(joined(epoch_of(loader)), std::vector<int64_t>(20, 1));
}

// Of two passes at once each has its own place.
TEST(DataLoader, BeginsAPassOfItsOwnAtEachCall) {
  DataLoader loader(numbers(4), {.batch_size = 2});
  const auto first = loader.pass(), second = loader.pass();
  EXPECT_EQ(list(first.next()->data()), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(list(second.next()->data()), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(list(first.next()->data()), (std::vector<int64_t>{2, 3}));
  EXPECT_FALSE(first.next());
}

TEST(DataLoader, RefusesOptionsOutOfRange) {
  const DistributedSampler sampler(4, 1, 0);
  EXPECT_THAT(refusal([&] { DataLoader(numbers(4), {.shuffle = true, .sampler = &sampler}); }),
              HasSubstr("more than one of shuffle, sampler and order"));
  EXPECT_THAT(refusal([] { DataLoader(numbers(4), {.batch_size = 0}); }), HasSubstr("batch_size is 0"));
  EXPECT_THAT(refusal([] { DataLoader(numbers(4), {.prefetch_factor = 0}); }), HasSubstr("prefetch_factor is 0"));
  EXPECT_THAT(refusal([] { DataLoader(numbers(4), {.num_workers = -1}); }), HasSubstr("num_workers is -1"));
  EXPECT_THAT(refusal([] { DataLoader(numbers(4), {.num_workers = 257}); }), HasSubstr("0 to 256 are possible"));
  EXPECT_THAT(refusal([] { DataLoader(numbers(4), {.timeout = std::chrono::milliseconds(-1500)}); }),
              HasSubstr("timeout is -1.5 s; give a time, or 0 for no limit"));
}

TEST(DataLoader, TakesManyWorkersAndReadsNoMoreThanTheMostAhead) {
  DataLoader workers(numbers(100), {.num_workers = 36}),
      ahead(numbers(100), {.num_workers = 2, .prefetch_factor = 1 << 30});
  for (DataLoader* loader : {&workers, &ahead}) EXPECT_THAT(epoch_of(*loader), SizeIs(100));
}

TEST(DataLoader, ATimeoutOf0IsNone) {
  using namespace std::chrono_literals;
  DataLoader loader(numbers(50), {.num_workers = 1, .timeout = 0s});
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_THAT(epoch_of(loader), SizeIs(50));
}

TEST(TorchRandomSplit, TakesNumbersAndFractions) {
  const auto parts = random_split(numbers(11), {0.5, 0.5}, 1), same = random_split(numbers(11), {6, 5}, 1);
  ASSERT_THAT(parts, SizeIs(2));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(parts[i]->size(), i == 0 ? 6 : 5);
    EXPECT_EQ(parts[i]->fingerprint(), same[i]->fingerprint());
  }
  EXPECT_EQ(parts[0]->description(), "6 of tensors data, target, 11 samples");
  EXPECT_THAT(random_split(numbers(11), {0.7, 0.2, 0.1}), SizeIs(3));
  for (const double fraction : {0.43, 0.71}) {  // times 100 and by 100 again they are others
    EXPECT_EQ(random_split(numbers(1000), {fraction, 1 - fraction})[0]->size(), std::lround(1000 * fraction));
  }
  EXPECT_THAT(refusal([] { random_split(numbers(11), {1.5, -0.5}); }), HasSubstr("a fraction of -0.5"));
  EXPECT_THAT(refusal([] { random_split(numbers(11), {6, 4}); }), HasSubstr("add up to 10, and the data set has 11"));
  EXPECT_THAT(refusal([] { random_split(numbers(11), {0.5, 0.4}); }), HasSubstr("a length of 0.5"));
  EXPECT_THAT(refusal([] { random_split(numbers(11), {12, -1}); }), HasSubstr("a length of -1"));
  EXPECT_THAT(refusal([] { random_split(numbers(11), {1e300, 1}); }), HasSubstr("a length of 1e+300"));
  EXPECT_THAT(refusal([] { random_split(numbers(11), {1e300, -1e300, 1}); }), HasSubstr("a fraction of -1e+300"));
  EXPECT_THAT(refusal([] { random_split(numbers(11), {std::nan(""), 1}); }), HasSubstr("a length of nan"));
}

}  // namespace
}  // namespace lockstep::pytorch
