#include "lockstep/data/read_batch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

// Reads what it was asked for.
struct Asked final : Dataset {
  int64_t size() const override { return 9; }
  std::vector<Field> fields() const override {
    return {{.name = "data", .dtype = at::kLong, .shape = {4}}, {.name = "more", .dtype = at::kByte, .shape = {}}};
  }
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, ReadStats&) const override {
    if (index == 8) throw DataError("sample 8: is damaged");
    const auto seed = static_cast<int64_t>(draw.seed), number = static_cast<int64_t>(draw.number);
    rows[0].copy_(at::tensor({index, seed, int64_t{draw.epoch}, number}, at::kLong));
    rows[1].fill_(index);
  }
  std::string fingerprint() const override { return "asked"; }
  std::string description() const override { return "asked"; }
};

TEST(ReadBatch, ReadsEachSampleByADrawOfItsOwn) {
  const Batch batch = read_batch(Asked(), std::vector<int64_t>{5, 2, 5}, /*epoch=*/3, /*seed=*/7);
  EXPECT_TRUE(at::equal(batch.data(), at::tensor({5, 7, 3, 5, 2, 7, 3, 2, 5, 7, 3, 5}, at::kLong).view({3, 4})));
  EXPECT_TRUE(at::equal(batch["more"], at::tensor({5, 2, 5}, at::kByte)));
}

TEST(ReadBatch, OfNoNumbersHasTheFieldsAllTheSame) {
  const Batch none = read_batch(Asked(), {});
  EXPECT_EQ(none.data().sizes(), (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(none["more"].scalar_type(), at::kByte);
}

TEST(ReadBatch, ThrowsWhatADataSetThrows) { EXPECT_THROW(read_batch(Asked(), std::vector<int64_t>{1, 8}), DataError); }

}  // namespace
}  // namespace lockstep::data
