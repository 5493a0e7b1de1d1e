#include "lockstep/data/subset.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/data/read_batch.h"
#include "lockstep/data/tensor_dataset.h"
#include "lockstep/data/wrapped.h"

namespace lockstep::data {
namespace {

// Sample i is the number i.
std::shared_ptr<const Dataset> numbers(int64_t size) { return std::make_shared<TensorDataset>(at::arange(size)); }

using ::testing::AllOf;
using ::testing::HasSubstr;

HoldOut held(int64_t size, double percent, uint64_t seed) { return hold_out(*numbers(size), percent, seed); }

TEST(HoldOut, PartsTheSamplesByTheSeedAlone) {
  const HoldOut parts = held(1000, 12.5, 3);
  EXPECT_EQ(parts.validation.size(), 125u);
  std::vector<int64_t> all;
  std::merge(parts.train.begin(), parts.train.end(), parts.validation.begin(), parts.validation.end(),
             std::back_inserter(all));
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(all[static_cast<size_t>(i)], i);
  EXPECT_EQ(held(1000, 12.5, 3).validation, parts.validation);
  EXPECT_NE(held(1000, 12.5, 4).validation, parts.validation);
  EXPECT_LT(parts.validation.front(), 100);  // from all over, not a block
  EXPECT_GT(parts.validation.back(), 900);
  EXPECT_EQ(held(24, 10, 1).validation, (std::vector<int64_t>{1, 3})) << "checkpoints record the percent alone";
}

TEST(HoldOut, RoundsDownAndChecksItsShare) {
  EXPECT_EQ(held(24, 10, 0).validation.size(), 2u);
  EXPECT_TRUE(held(24, 0, 0).validation.empty());
  EXPECT_TRUE(held(24, 1, 0).validation.empty());
  EXPECT_THROW(held(24, 100, 0), ConfigError);
  EXPECT_THROW(held(24, -1, 0), ConfigError);
  EXPECT_THROW(held(24, std::numeric_limits<double>::quiet_NaN(), 0), ConfigError);
}

TEST(Subset, RenumbersItsBase) {
  const auto base = numbers(20);
  const auto some = subset(base, {19, 4}, "two");
  EXPECT_EQ(some->size(), 2);
  EXPECT_EQ(some->description(), "two");
  EXPECT_TRUE(at::equal(read_batch(*some, std::vector<int64_t>{1, 0}).data(),
                        read_batch(*base, std::vector<int64_t>{4, 19}).data()));
  EXPECT_THROW(subset(base, {20}, "beyond"), BugError);
}

// Sample i is of class i mod `classes`; what is read is 1 more where it is augmented.
class Classes final : public Dataset {
 public:
  Classes(int64_t size, int64_t classes, bool augmented = true)
      : size_(size), classes_(classes), augmented_(augmented) {}
  int64_t size() const override { return size_; }
  std::vector<Field> fields() const override { return {{.name = "data", .dtype = at::kLong, .shape = {}}}; }
  void read(int64_t index, const Draw&, std::span<const at::Tensor> rows, ReadStats&) const override {
    rows[0].fill_(index + (augmented_ ? 1 : 0));
  }
  std::string fingerprint() const override { return "classes"; }
  std::string description() const override { return "photographs"; }
  int64_t classes() const override { return classes_; }
  int64_t class_of(int64_t index) const override { return index % classes_; }
  std::string name_of(int64_t index) const override { return cat(index % classes_, "/", index, ".jpg"); }
  std::shared_ptr<const Dataset> for_evaluation() const override {
    return std::make_shared<Classes>(size_, classes_, false);
  }

 private:
  int64_t size_, classes_;
  bool augmented_;
};

Splits train_alone(int64_t size, int64_t classes) {
  return {.train = std::make_shared<Classes>(size, classes),
          .test = nullptr,
          .validation = nullptr,
          .usual_validation = 10};
}

bool is_augmented(const Dataset& data) {
  Batch batch = read_batch(data, std::vector<int64_t>{0});
  return data.name_of(0).find(cat("/", batch.data().item<int64_t>(), ".")) == std::string::npos;
}

TEST(Complete, HoldsOutTrainingSamples) {
  const Splits splits{.train = numbers(200), .test = numbers(10), .validation = nullptr};
  const Completed done = complete(splits, {10}, 1);
  EXPECT_EQ(done.splits.train->size(), 180);
  EXPECT_EQ(done.splits.validation->size(), 20);
  EXPECT_EQ(done.splits.test, splits.test);
  EXPECT_EQ(done.held_out.percent, 10);
  EXPECT_THAT(done.splits.validation->description(), HasSubstr("20 of tensors data, 200 samples"));
  EXPECT_FALSE(done.usual);
  for (const std::optional<double> percent : {std::optional<double>(0), std::optional<double>()}) {
    EXPECT_EQ(complete(splits, {percent}, 1).splits.train, splits.train);
    EXPECT_EQ(complete(splits, {percent}, 1).held_out.percent, 0);
    EXPECT_TRUE(complete(splits, {percent}, 1).usual) << "there is a test part";
  }
  EXPECT_THROW(complete(splits, {0.1}, 1), ConfigError);
}

TEST(Complete, HoldsOutTheSamplesThatAreNamed) {
  const Completed done = complete(train_alone(24, 4), {.files = "7.jpg,2[0-3].jpg"}, 1);
  EXPECT_EQ(done.splits.train->size(), 19);
  ASSERT_EQ(done.splits.validation->size(), 5);
  EXPECT_EQ(done.splits.validation->name_of(0), "3/7.jpg");
  EXPECT_EQ(done.splits.validation->name_of(4), "3/23.jpg");
  EXPECT_FALSE(is_augmented(*done.splits.test)) << "they are the test part, too";
  EXPECT_EQ(done.held_out.files, "7.jpg,2[0-3].jpg");
  EXPECT_FALSE(done.held_out.percent) << "of which a run may hold out 90 at most";
  EXPECT_THAT(done.splits.validation->description(), HasSubstr("5 of photographs (7.jpg,2[0-3].jpg held out)"));
  const auto refused = [](const std::string& files) {
    return testing_support::refusal<ConfigError>([&] { complete(train_alone(24, 4), {.files = files}, 1); });
  };
  EXPECT_EQ(refused("24.jpg"),
            "--hold-out 24.jpg: none of the 24 samples' files is called 24.jpg; the first one is 0.jpg");
  EXPECT_THAT(refused("*"), HasSubstr("leave some to train on"));
}

TEST(Complete, WhatIsNotTrainedOnIsNotAugmented) {
  const Completed done = complete(train_alone(200, 4), {25}, 1);
  EXPECT_TRUE(is_augmented(*done.splits.train));
  EXPECT_FALSE(is_augmented(*done.splits.validation));
  EXPECT_FALSE(is_augmented(*done.splits.test));
}

TEST(Complete, WithoutATestPartTheUsualPercentIsHeldOut) {
  const Completed done = complete(train_alone(200, 4), {std::nullopt}, 1);
  EXPECT_EQ(done.held_out.percent, 10);
  EXPECT_EQ(done.splits.train->size(), 180);
  EXPECT_EQ(done.splits.test->size(), 20);
  EXPECT_TRUE(done.usual);
  EXPECT_THAT(done.splits.test->description(), HasSubstr("(the usual 10 % held out)"));
  EXPECT_EQ(complete(train_alone(200, 4), {10}, 1).splits.test->fingerprint(), done.splits.test->fingerprint());
  EXPECT_FALSE(complete(train_alone(200, 4), {0}, 1).usual);
  EXPECT_EQ(complete(train_alone(200, 4), {0}, 1).splits.train->size(), 200);
  const Completed quarter = complete(train_alone(200, 4), {25}, 1);
  EXPECT_FALSE(quarter.usual);
  EXPECT_THAT(quarter.splits.test->description(), HasSubstr("(25 % held out)"));
  Splits own = train_alone(200, 4);
  own.validation = std::make_shared<Classes>(8, 4);
  const Completed given = complete(own, {std::nullopt}, 1);
  EXPECT_EQ(given.splits.train->size(), 200);
  EXPECT_EQ(given.splits.test->size(), 8);
  EXPECT_FALSE(is_augmented(*given.splits.test));
}

// The first `rare` samples are of one class each, the others of one class together.
class RareClasses final : public Wrapped {
 public:
  RareClasses(int64_t size, int64_t rare) : Wrapped(std::make_shared<Classes>(size, rare + 1, false)), rare_(rare) {}
  int64_t class_of(int64_t index) const override { return std::min(index, rare_); }

 private:
  std::shared_ptr<const Dataset> around(std::shared_ptr<const Dataset>) const override { return nullptr; }
  int64_t rare_;
};

TEST(Complete, HoldsOutOfTheClassesThatCanSpareASample) {
  const Splits splits{.train = std::make_shared<RareClasses>(100, 40), .usual_validation = 50};
  for (const std::optional<double> percent : {std::optional<double>(50), std::optional<double>()}) {
    const Completed done = complete(splits, {percent}, 1);
    EXPECT_EQ(done.splits.validation->size(), 50);
    EXPECT_EQ(done.held_out.percent, 50);
    std::vector<int64_t> classes;
    for (int64_t i = 0; i < done.splits.train->size(); ++i) classes.push_back(done.splits.train->class_of(i));
    EXPECT_EQ(std::count(classes.begin(), classes.end(), 40), 10);
    EXPECT_EQ(classes.size(), 50u) << "with 40 classes of one sample";
    EXPECT_THAT(done.splits.validation->description(), HasSubstr("50 % held out, of the classes that can spare one)"));
  }
  const Completed most = complete(splits, {90}, 1);
  EXPECT_EQ(most.splits.train->size(), 41) << "one of each class";
}

TEST(Complete, WhatIsHeldOutIsTheSameWhereAllClassesCanSpareIt) {
  EXPECT_EQ(hold_out(Classes(200, 4), 10, 3).validation, held(200, 10, 3).validation);
  EXPECT_EQ(hold_out(Classes(200, 4), 10, 3).kept, 0);
}

// 250 classes of one photograph each.
TEST(Complete, NoClassLosesItsLastSample) {
  const Completed done = complete(train_alone(250, 250), {std::nullopt}, 1);
  EXPECT_EQ(done.held_out.percent, 0);
  EXPECT_TRUE(done.usual);
  EXPECT_TRUE(complete(train_alone(250, 250), {0}, 1).usual) << "as config.toml says it";
  EXPECT_EQ(done.splits.train->size(), 250);
  EXPECT_EQ(done.splits.validation, nullptr);
  EXPECT_EQ(done.splits.test->size(), 250);
  EXPECT_FALSE(is_augmented(*done.splits.test));
  EXPECT_THAT(done.splits.test->description(), HasSubstr("the training samples themselves, for there are no others"));
  EXPECT_THAT(testing_support::refusal([] { complete(train_alone(250, 250), {10}, 1); }),
              AllOf(HasSubstr("--validation 10: each of the 250 classes is of one sample (0/0.jpg)"),
                    HasSubstr("classes would have no sample left to train on")));
}

TEST(Complete, FewSamplesAreNotHeldOutUnasked) {
  const Completed done = complete(train_alone(9, 1), {std::nullopt}, 1);
  EXPECT_EQ(done.splits.train->size(), 9);
  EXPECT_EQ(done.splits.test->size(), 9);
}

}  // namespace
}  // namespace lockstep::data
