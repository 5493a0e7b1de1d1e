#include "lockstep/data/concat.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/data/read_batch.h"
#include "lockstep/data/tensor_dataset.h"

namespace lockstep::data {
namespace {

using ::testing::HasSubstr;
using testing_support::refusal;

std::shared_ptr<const Dataset> numbers(int64_t begin, int64_t end, int64_t classes = 10) {
  return std::make_shared<TensorDataset>(at::arange(begin, end), at::arange(begin, end) % classes);
}

// Pictures from files: their numbers from `begin`, and 1 more where they are augmented; the target is the draw's
// number.
class Pictures final : public Dataset {
 public:
  Pictures(int64_t begin, int64_t size, std::vector<std::string> names, bool augmented = true)
      : begin_(begin), size_(size), names_(std::move(names)), augmented_(augmented) {}
  int64_t size() const override { return size_; }
  std::vector<Field> fields() const override { return numbers(0, 1)->fields(); }
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, ReadStats&) const override {
    rows[0].fill_(begin_ + index + (augmented_ ? 1 : 0));
    rows[1].fill_(static_cast<int64_t>(draw.number));
  }
  std::string fingerprint() const override { return "pictures"; }
  std::string description() const override { return "pictures"; }
  std::string transforms() const override { return augmented_ ? "plus one" : ""; }
  int64_t classes() const override { return std::ssize(names_); }
  std::vector<std::string> class_names() const override { return names_; }
  bool decodes() const override { return true; }
  std::string name_of(int64_t index) const override { return cat(index, ".jpg"); }
  std::vector<Listed> listing() const override { return {{"1.jpg", 5}}; }
  void will_need(std::span<const int64_t> indices) const override { needed.assign(indices.begin(), indices.end()); }
  std::shared_ptr<const Dataset> for_evaluation() const override {
    return augmented_ ? std::make_shared<Pictures>(begin_, size_, names_, false) : nullptr;
  }
  mutable std::vector<int64_t> needed;

 private:
  int64_t begin_, size_;
  std::vector<std::string> names_;
  bool augmented_;
};

// Images of one byte, which this table normalises.
class Bytes final : public Dataset {
 public:
  explicit Bytes(at::Tensor table) : table_(std::move(table)) {}
  int64_t size() const override { return 1; }
  std::vector<Field> fields() const override { return {{"data", at::kByte, {1, 1, 1}, false, table_}}; }
  void read(int64_t, const Draw&, std::span<const at::Tensor> rows, ReadStats&) const override { rows[0].zero_(); }
  std::string fingerprint() const override { return "bytes"; }
  std::string description() const override { return "bytes"; }

 private:
  at::Tensor table_;
};

TEST(Concat, NumbersTheSamplesThrough) {
  const auto all = concat({numbers(0, 3), numbers(7, 7), numbers(20, 22)});
  EXPECT_EQ(all->size(), 5);
  EXPECT_EQ(all->classes(), 3) << "of the part with most";
  EXPECT_EQ(all->class_of(4), 1);
  const Batch batch = read_batch(*all, std::vector<int64_t>{4, 0, 3, 2});
  EXPECT_TRUE(at::equal(batch.data(), at::tensor({21, 0, 20, 2}, at::kLong)));
  EXPECT_EQ(all->for_evaluation(), nullptr);
  EXPECT_THAT(all->description(), HasSubstr("3 samples and tensors data, target, 0 samples and "));
  EXPECT_THROW(read_batch(*all, std::vector<int64_t>{5}), BugError);
  EXPECT_THROW(read_batch(*all, std::vector<int64_t>{-1}), BugError);
}

TEST(Concat, IsToldFromOthersByItsParts) {
  const auto of = [](int64_t border) { return concat({numbers(0, border), numbers(border, 6)})->fingerprint(); };
  EXPECT_EQ(of(2), of(2));
  EXPECT_NE(of(2), of(3));
  EXPECT_NE(concat({numbers(0, 2), numbers(2, 4)})->fingerprint(),
            concat({numbers(2, 4), numbers(0, 2)})->fingerprint());
}

TEST(Concat, PassesOnWhatItsPartsSay) {
  const std::vector<std::string> names = {"cats", "dogs"};
  const auto first = std::make_shared<Pictures>(0, 3, names);
  const auto second = std::make_shared<Pictures>(8, 2, names);
  const auto all = concat({first, second});
  EXPECT_EQ(all->class_names(), names);
  EXPECT_EQ(all->transforms(), "plus one");
  EXPECT_TRUE(all->decodes());
  EXPECT_EQ(all->name_of(3), "0.jpg");
  EXPECT_EQ(all->listing(), (std::vector<Listed>{{"part 0/1.jpg", 5}, {"part 1/1.jpg", 5}}));
  all->will_need(std::vector<int64_t>{4, 1, 3});
  EXPECT_EQ(first->needed, (std::vector<int64_t>{1}));
  EXPECT_EQ(second->needed, (std::vector<int64_t>{1, 0}));
  const Batch batch = read_batch(*all, std::vector<int64_t>{3});
  EXPECT_EQ(batch.data().item<int64_t>(), 9);
  EXPECT_EQ(batch.target().item<int64_t>(), 3) << "the draw is of its number in all";
  const auto plain = all->for_evaluation();
  EXPECT_EQ(plain->size(), 5);
  EXPECT_EQ(read_batch(*plain, std::vector<int64_t>{3}).data().item<int64_t>(), 8);
  EXPECT_EQ(plain->for_evaluation(), nullptr);
}

TEST(Concat, RefusesPartsThatDoNotGoTogether) {
  EXPECT_THAT(refusal([] { concat({}); }), HasSubstr("no parts"));
  const auto points = std::make_shared<TensorDataset>(at::zeros({2, 2}), at::arange(2));
  EXPECT_THAT(refusal([&] { concat({numbers(0, 3), points}); }), HasSubstr("other fields than"));
  const auto named = std::make_shared<Pictures>(0, 2, std::vector<std::string>{"cats", "dogs"});
  EXPECT_THAT(refusal([&] { concat({numbers(0, 3), named}); }), HasSubstr("classes of other names"));
  const auto grey = std::make_shared<Bytes>(at::zeros({1, 256})), pale = std::make_shared<Bytes>(at::ones({1, 256}));
  EXPECT_NO_THROW(concat({grey, std::make_shared<Bytes>(at::zeros({1, 256}))}));
  EXPECT_THAT(refusal([&] {
                concat({grey, pale});
              }),
              HasSubstr("other fields than"))
      << "they are normalised otherwise";
  EXPECT_THAT(refusal([&] { concat({grey, std::make_shared<Bytes>(at::Tensor())}); }), HasSubstr("other fields than"));
}

}  // namespace
}  // namespace lockstep::data
