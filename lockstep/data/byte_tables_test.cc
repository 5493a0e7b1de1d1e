#include "lockstep/data/byte_tables.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/mix.h"
#include "lockstep/data/tensor_dataset.h"
#include "lockstep/data/wrapped.h"

namespace lockstep::data {
namespace {

using ::lockstep::testing_support::refusal;
using ::testing::HasSubstr;

at::Tensor table_of(int64_t channels, at::ScalarType dtype) {
  at::manual_seed(4);
  return at::randn({channels, 256}).to(dtype);
}

at::Tensor bytes_of(at::IntArrayRef shape) {
  at::manual_seed(5);
  return at::randint(0, 256, shape, at::kByte);
}

// The definition, value by value.
at::Tensor expected_of(const at::Tensor& images, const at::Tensor& table) {
  at::Tensor result = at::empty(images.sizes(), table.options());
  for (int64_t c = 0; c < images.size(1); ++c) {
    result.select(1, c).copy_(table[c].take(images.select(1, c).to(at::kLong)));
  }
  return result;
}

TEST(ByteTables, LookUpIsTheTableInEachTypeAndLayout) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const int64_t channels : {1, 3}) {
      const at::Tensor table = table_of(channels, dtype);
      for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
        const at::Tensor images = bytes_of({5, channels, 9, 7}).contiguous(format);
        const at::Tensor found = look_up(images, table);
        EXPECT_EQ(found.scalar_type(), dtype);
        EXPECT_TRUE(found.is_contiguous(format));
        EXPECT_TRUE(at::equal(found, expected_of(images, table))) << dtype << channels;
        EXPECT_EQ(look_up(images.narrow(0, 0, 0), table).sizes(), at::IntArrayRef({0, channels, 9, 7}));
        EXPECT_TRUE(at::equal(look_up(images.narrow(0, 1, 1), table), found.narrow(0, 1, 1)));
      }
    }
  }
}

TEST(ByteTables, LargeBatchesAreLookedUpInPieces) {
  const at::Tensor images = bytes_of({6, 3, 1024, 1024}), table = table_of(3, at::kFloat);
  ASSERT_GT(images.numel() * 4, kLookUpBytes);
  const at::Tensor found = look_up(images, table);
  for (int64_t row = 0; row < 6; ++row) {
    const at::Tensor one = images.narrow(0, row, 1);
    ASSERT_TRUE(at::equal(found.narrow(0, row, 1), expected_of(one, table))) << row;
  }
}

TEST(ByteTables, NormalisingTwiceIsAnError) {
  const at::Tensor images = bytes_of({2, 3, 4, 4}), table = table_of(3, at::kFloat);
  EXPECT_THROW(look_up(look_up(images, table), table), BugError);
  EXPECT_THROW(look_up(images, table_of(1, at::kFloat)), BugError);
}

TEST(ByteTables, ApplyToTheFieldsThatHaveThem) {
  const std::vector<Field> fields = {
      {.name = "data", .dtype = at::kByte, .shape = {3, 4, 4}, .table = table_of(3, at::kHalf)},
      {.name = "target", .dtype = at::kLong, .shape = {}}};
  EXPECT_TRUE(has_tables(fields));
  EXPECT_FALSE(has_tables(looked_up(fields)));
  EXPECT_EQ(looked_up(fields)[0].dtype, at::kHalf);
  EXPECT_EQ(looked_up(fields)[1].dtype, at::kLong);
  const at::Tensor images = bytes_of({2, 3, 4, 4}), target = at::arange(2);
  Batch batch = {{"data", images}, {"target", target}};
  const ByteTables tables(fields, at::kCPU);
  tables.apply(batch);
  EXPECT_TRUE(at::equal(batch.data(), look_up(images, fields[0].table)));
  EXPECT_TRUE(batch.target().is_same(target));
  EXPECT_THAT(refusal([&] { tables.apply(batch); }), HasSubstr("data is normalised twice: its values are Half"));
  EXPECT_THROW(tables.apply(batch), ConfigError);
}

// Images of bytes, or another tensor, with a table.
class WithTable final : public Wrapped {
 public:
  WithTable(std::shared_ptr<const Dataset> base, at::Tensor table)
      : Wrapped(std::move(base)), table_(std::move(table)) {}
  std::vector<Field> fields() const override {
    auto fields = Wrapped::fields();
    fields[0].table = table_;
    return fields;
  }

 private:
  std::shared_ptr<const Dataset> around(std::shared_ptr<const Dataset> base) const override {
    return std::make_shared<WithTable>(std::move(base), table_);
  }
  at::Tensor table_;
};

std::shared_ptr<const Dataset> with_table(const at::Tensor& images, const at::Tensor& table) {
  return std::make_shared<WithTable>(std::make_shared<TensorDataset>(images, at::arange(images.size(0)) % 4), table);
}

Loader loader_of(const std::shared_ptr<const Dataset>& dataset, const MixOptions& mixing = {}) {
  const LaneSampler sampler({.dataset_size = dataset->size(), .lanes = 1, .batch_size = 4, .seed = 8});
  const bool mixes = mixing.mixup > 0 || mixing.cutmix > 0;
  return Loader(dataset, sampler, {.transform = mixes ? mix(mixing) : nullptr});
}

TEST(ByteTables, ThatDontFitAreRefusedByTheLoader) {
  const at::Tensor images = bytes_of({8, 3, 6, 5}), table = table_of(3, at::kFloat);
  const auto refused = [](const at::Tensor& of, const at::Tensor& by) {
    return refusal([&] { loader_of(with_table(of, by)); });
  };
  EXPECT_THAT(refused(images.to(at::kFloat), table), HasSubstr("they would be normalised twice"));
  EXPECT_THAT(refused(images.view({8, 3, 30}), table), HasSubstr("is no image"));
  EXPECT_THAT(refused(images, table_of(1, at::kFloat)), HasSubstr("expected a floating-point type and [3, 256]"));
  EXPECT_THAT(refused(images, table.to(at::kInt)), HasSubstr("expected a floating-point type"));
}

TEST(ByteTables, MixUpNeedsNumbersAndCutMixMovesBytes) {
  const at::Tensor images = bytes_of({12, 3, 9, 7}), table = table_of(3, at::kFloat);
  const auto bytes = with_table(images, table);
  for (const MixOptions& mixing : {MixOptions{.mixup = 0.2}, MixOptions{.mixup = 0.2, .cutmix = 1}}) {
    EXPECT_THAT(refusal([&] { loader_of(bytes, mixing); }),
                HasSubstr("computes with normalised images, and these are bytes"));
  }
  const auto numbers = std::make_shared<TensorDataset>(look_up(images, table), at::arange(12) % 4);
  Loader before = loader_of(bytes, {.cutmix = 1}), after = loader_of(numbers, {.cutmix = 1});
  const ByteTables tables(bytes->fields(), at::kCPU);
  for (int step = 0; step < 6; ++step) {
    StepBatch got = before.next(), want = after.next();
    tables.apply(got.lanes[0]);
    EXPECT_TRUE(at::equal(got.lanes[0].data(), want.lanes[0].data())) << step;
    EXPECT_TRUE(at::equal(got.lanes[0].target(), want.lanes[0].target())) << step;
  }
}

}  // namespace
}  // namespace lockstep::data
