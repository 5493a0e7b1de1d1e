#include "lockstep/compat/paddle/reader.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/data/batch_dealer.h"
#include "lockstep/data/tensor_dataset.h"

namespace lockstep::paddle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;
using testing_support::refusal;

// A reader of a program's own.
auto numbers(int end, int begin = 0) {
  return [=] {
    return data::Pass<int>([i = begin, end]() mutable { return i < end ? std::optional(i++) : std::nullopt; });
  };
}

template <typename Make>
std::vector<ItemOf<Make>> all_of(const Make& reader) {
  std::vector<ItemOf<Make>> all;
  for (const auto& item : reader()) all.push_back(item);
  return all;
}

TEST(PaddleBatch, CutsAPassIntoLists) {
  const auto batches = batch(numbers(7), 3);
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_THAT(all_of(batches), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5), ElementsAre(6)));
  }
  EXPECT_THAT(all_of(batch(numbers(7), 3, /*drop_last=*/true)),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5)));
  EXPECT_THAT(all_of(batch(numbers(0), 3)), IsEmpty());
  EXPECT_THAT(refusal([] { batch(numbers(7), 0); }), HasSubstr("batch_size is 0"));
}

// BatchDealer says the same of the samples' numbers.
TEST(PaddleDistributedBatchReader, DealsWholeBatchesByTurns) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const bool drop_last : {false, true}) {
      for (int rank = 0; rank < ranks; ++rank) {
        const auto own =
            all_of(distributed_batch_reader(batch(numbers(23), 4, drop_last), {.nranks = ranks, .local_rank = rank}));
        const data::BatchDealer dealer(
            {.samples = 23, .batch_size = 4, .drop_last = drop_last, .ranks = ranks, .rank = rank});
        ASSERT_EQ(std::ssize(own), dealer.size());
        for (int64_t i = 0; i < dealer.size(); ++i) {
          const auto& items = own[static_cast<size_t>(i)];
          EXPECT_EQ((data::Range{items.front(), std::ssize(items)}), dealer.batch(i));
        }
      }
    }
  }
}

TEST(PaddleShuffle, OrdersBuffersByTheSeedAndThePass) {
  const auto shuffled = reader::shuffle(numbers(10), 4, 7), same = reader::shuffle(numbers(10), 4, 7);
  const auto first = all_of(shuffled), second = all_of(shuffled);
  EXPECT_EQ(all_of(same), first) << "on another rank";
  EXPECT_EQ(all_of(same), second);
  EXPECT_NE(first, second);
  EXPECT_NE(all_of(reader::shuffle(numbers(10), 4, 8)), first);
  EXPECT_THAT(std::vector(first.begin(), first.begin() + 4), UnorderedElementsAreArray({0, 1, 2, 3}));
  EXPECT_THAT(std::vector(first.begin() + 4, first.begin() + 8), UnorderedElementsAreArray({4, 5, 6, 7}));
  EXPECT_THAT(std::vector(first.begin() + 8, first.end()), UnorderedElementsAreArray({8, 9}));
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  EXPECT_THAT(refusal([] { reader::shuffle(numbers(7), 0); }), HasSubstr("buf_size is 0"));
}

TEST(PaddleDecorators, MapChainComposeFirstnAndCache) {
  const auto sum = [](int a, int b) { return std::to_string(a + b); };
  EXPECT_THAT(all_of(reader::map_readers(sum, numbers(3), numbers(20, 10))), ElementsAre("10", "12", "14"));
  EXPECT_THAT(all_of(reader::chain(numbers(2), numbers(0), numbers(7, 5))), ElementsAre(0, 1, 5, 6));
  using Two = std::tuple<int, std::string>;
  const auto texts = reader::map_readers([](int i) { return std::string(1, static_cast<char>('a' + i)); }, numbers(2));
  EXPECT_THAT(all_of(reader::compose(numbers(2), texts)), ElementsAre(Two{0, "a"}, Two{1, "b"}));
  EXPECT_THROW(all_of(reader::compose(numbers(3), texts)), DataError);
  EXPECT_THAT(all_of(reader::firstn(numbers(9), 2)), ElementsAre(0, 1));
  EXPECT_THAT(all_of(reader::firstn(numbers(1), 2)), ElementsAre(0));
  int passes = 0;
  const auto counted = [&] { return ++passes, numbers(3)(); };
  const auto cached = reader::cache(counted);
  for (int i = 0; i < 2; ++i) EXPECT_THAT(all_of(cached), ElementsAre(0, 1, 2));
  EXPECT_EQ(passes, 1);
}

// Reads its index, the pass, and a drawn number.
struct Drawn final : data::Dataset {
  int64_t size() const override { return 5; }
  std::vector<data::Field> fields() const override { return {{.name = "data", .dtype = at::kLong, .shape = {3}}}; }
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, data::ReadStats&) const override {
    RandomStream random = draw.stream(0);
    rows[0].copy_(at::tensor({index, int64_t{draw.epoch}, int64_t{random.bits()}}, at::kLong));
  }
  std::string fingerprint() const override { return "drawn"; }
  std::string description() const override { return "drawn"; }
};

TEST(PaddleReaderOf, GivesADataSetsSamplesAsBatches) {
  const auto points = std::make_shared<data::TensorDataset>(at::arange(5), at::arange(5) * 2);
  const auto batches = all_of(batch(reader_of(points), 3));
  ASSERT_EQ(batches.size(), 2u);
  const data::Batch last = read(batches[1]);
  EXPECT_TRUE(at::equal(last.data(), at::tensor({3, 4}, at::kLong)));
  EXPECT_TRUE(at::equal(last.target(), at::tensor({6, 8}, at::kLong)));
  EXPECT_THROW(read({}), ConfigError);
  const auto others = std::make_shared<data::TensorDataset>(at::arange(5));
  const auto both = all_of(batch(reader::chain(reader_of(points), reader_of(others)), 10));
  EXPECT_THAT(refusal([&] { read(both[0]); }), HasSubstr("read each by itself"));
}

TEST(PaddleReaderOf, AugmentsEachPassByNumbersOfItsOwn) {
  const auto drawn = std::make_shared<Drawn>();
  const auto reader = reader_of(drawn, 3), same = reader_of(drawn, 3), other = reader_of(drawn, 4);
  const auto first = read(all_of(reader)).data(), second = read(all_of(reader)).data();
  EXPECT_TRUE(at::equal(first.select(1, 1), at::zeros({5}, at::kLong)));
  EXPECT_TRUE(at::equal(second.select(1, 1), at::ones({5}, at::kLong)));
  EXPECT_FALSE(at::equal(first.select(1, 2), second.select(1, 2)));
  EXPECT_TRUE(at::equal(read(all_of(same)).data(), first));
  EXPECT_FALSE(at::equal(read(all_of(other)).data(), first));
}

}  // namespace
}  // namespace lockstep::paddle
