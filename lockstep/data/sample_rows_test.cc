#include "lockstep/data/sample_rows.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

#include "lockstep/data/byte_tables.h"

namespace lockstep::data {
namespace {

const std::vector<Field> kFields = {{"data", at::kFloat, {2, 3, 4}},
                                    {"seen", at::kBFloat16, {2, 3, 4}, /*channels_last=*/true},
                                    {"target", at::kLong, {}}};

TEST(SampleRows, HaveTheShapesOfTheFields) {
  SampleRows rows(kFields, 5);
  const Batch& batch = rows.batch();
  EXPECT_EQ(batch.size(), 5);
  EXPECT_EQ(batch.data().sizes(), at::IntArrayRef({5, 2, 3, 4}));
  EXPECT_TRUE(batch.data().is_contiguous());
  EXPECT_EQ(batch["seen"].scalar_type(), at::kBFloat16);
  EXPECT_TRUE(batch["seen"].is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(batch.target().sizes(), at::IntArrayRef({5}));
}

TEST(SampleRows, OfEncodedPicturesAreBytes) {
  const std::vector<Field> fields = {
      {.name = "data", .dtype = at::kByte, .shape = {3, 4, 5}, .channels_last = true, .encoded = 100},
      {.name = "target", .dtype = at::kLong, .shape = {}}};
  SampleRows rows(fields, 2);
  EXPECT_EQ(rows.batch().data().sizes(), at::IntArrayRef({2, 100}));
  EXPECT_EQ(rows.row(1)[0].sizes(), at::IntArrayRef({100}));
  EXPECT_EQ(bytes_of(fields, 2), 2 * (100 + 8));
  EXPECT_TRUE(has_encoded(fields));
  const std::vector<Field> decoded = looked_up(fields);
  EXPECT_FALSE(has_encoded(decoded));
  EXPECT_EQ(bytes_of(decoded, 2), 2 * (60 + 8));
}

TEST(SampleRows, AreTheRowsOfTheBatch) {
  SampleRows rows(kFields, 5);
  for (int64_t i = 0; i < 5; ++i) {
    const auto row = rows.row(i);
    ASSERT_EQ(row.size(), 3u);
    for (size_t field = 0; field < 3; ++field) {
      const at::Tensor wanted = rows.batch().tensors[field].second.select(0, i);
      EXPECT_EQ(row[field].data_ptr(), wanted.data_ptr());
      EXPECT_EQ(row[field].sizes(), wanted.sizes());
      EXPECT_EQ(row[field].strides(), wanted.strides());
      EXPECT_EQ(row[field].scalar_type(), wanted.scalar_type());
      row[field].fill_(i);
    }
  }
  EXPECT_TRUE(at::equal(rows.batch().target(), at::arange(5)));
  EXPECT_TRUE(at::equal(rows.batch()["seen"].select(1, 1).select(1, 2).select(1, 3), at::arange(5).to(at::kBFloat16)));
}

// `rows[0] = tensor` would write nothing, and lose the view of the row for good.
static_assert(!std::is_assignable_v<decltype(std::declval<SampleRows&>().row(0)[0]), at::Tensor>);

TEST(SampleRows, MayBeNone) {
  const SampleRows rows(kFields, 0);
  EXPECT_EQ(rows.batch().data().sizes(), at::IntArrayRef({0, 2, 3, 4}));
}

}  // namespace
}  // namespace lockstep::data
