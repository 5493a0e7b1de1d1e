#include "lockstep/data/relabelled.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/data/read_batch.h"
#include "lockstep/data/tensor_dataset.h"
#include "lockstep/data/wrapped.h"

namespace lockstep::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Sample i has the numbers of row i of `targets`.
class Named final : public Wrapped {
 public:
  Named(at::Tensor targets, Classes classes)
      : Wrapped(std::make_shared<TensorDataset>(at::zeros({targets.size(0), 2}), targets)),
        classes_(std::move(classes)) {}
  int64_t classes() const override { return classes_.count; }
  std::vector<std::string> class_names() const override { return classes_.names; }
  std::string description() const override { return "photos"; }

 private:
  std::shared_ptr<const Dataset> around(std::shared_ptr<const Dataset>) const override { return nullptr; }
  Classes classes_;
};

const Classes kTrained{.count = 3, .names = {"cats", "dogs", "eels"}};

std::shared_ptr<const Dataset> named(std::vector<int64_t> targets, std::vector<std::string> names) {
  const auto count = std::ssize(names);
  return std::make_shared<Named>(at::tensor(targets), Classes{.count = count, .names = std::move(names)});
}

std::vector<int64_t> targets_of(const Dataset& data) {
  std::vector<int64_t> all(static_cast<size_t>(data.size()));
  for (int64_t i = 0; i < data.size(); ++i) all[static_cast<size_t>(i)] = i;
  const at::Tensor target = read_batch(data, all).target().flatten();
  return {target.const_data_ptr<int64_t>(), target.const_data_ptr<int64_t>() + target.numel()};
}

std::string refusal(const std::shared_ptr<const Dataset>& data, const Classes& wanted) {
  try {
    relabelled(data, wanted);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(Relabelled, ClassesAreThoseOfTheSameName) {
  const auto other_order = relabelled(named({0, 1, 2, 0}, {"eels", "cats", "dogs"}), kTrained);
  EXPECT_EQ(targets_of(*other_order), (std::vector<int64_t>{2, 0, 1, 2}));
  EXPECT_EQ(other_order->class_of(1), 0);
  const auto some = relabelled(named({0, 1}, {"dogs", "eels"}), kTrained);
  EXPECT_EQ(targets_of(*some), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(classes_of(*some), kTrained);
  EXPECT_NE(some->fingerprint(), named({0, 1}, {"dogs", "eels"})->fingerprint());
}

TEST(Relabelled, MasksAreRenumberedPixelByPixel) {
  const at::Tensor masks = at::tensor({0, 1, 1, -100, 2, 0}, at::kLong).view({1, 2, 3});
  const auto data = std::make_shared<Named>(masks, Classes{.count = 3, .names = {"255", "0", "7"}});
  EXPECT_EQ(targets_of(*relabelled(data, {.count = 4, .names = {"0", "7", "9", "255"}})),
            (std::vector<int64_t>{3, 0, 0, -100, 1, 3}));
}

TEST(Relabelled, EqualClassesStayAsTheyAre) {
  const auto same = named({0, 1, 2}, kTrained.names);
  EXPECT_EQ(relabelled(same, kTrained), same);
  EXPECT_EQ(relabelled(same, {.count = 3}), same) << "by number";
}

TEST(Relabelled, WithoutNamesTheNumbersStay) {
  const auto data = std::make_shared<Named>(at::tensor({0, 1}, at::kLong), Classes{.count = 2});
  const auto wider = relabelled(data, kTrained);
  EXPECT_EQ(targets_of(*wider), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(wider->classes(), 3);
  EXPECT_THAT(refusal(data, {.count = 1}), AllOf(HasSubstr("photos: has 2 classes, and the network 1"),
                                                 HasSubstr("(TensorDataset's option classes)")));
}

TEST(Relabelled, AnUnknownClassIsNamed) {
  EXPECT_THAT(refusal(named({0, 1}, {"cats", "wolves"}), kTrained),
              AllOf(HasSubstr("photos: has the class wolves"), HasSubstr("(cats, dogs, eels)")));
}

TEST(Relabelled, WhatToDoIsSaidOfMasksAndOfFolders) {
  const at::Tensor masks = at::tensor({0, 1}, at::kLong).view({1, 1, 2});
  const auto data = std::make_shared<Named>(masks, Classes{.count = 2, .names = {"0", "7"}});
  EXPECT_THAT(refusal(data, {.count = 2, .names = {"0", "255"}}),
              AllOf(HasSubstr("photos: masks have the class 7, which is none of the network's 2 (0, 255); "),
                    HasSubstr("store its pixels as one of these"), ::testing::Not(HasSubstr("remove it"))));
  EXPECT_THAT(refusal(named({0, 1}, {"cats", "wolves"}), kTrained), HasSubstr("; remove it"));
}

}  // namespace
}  // namespace lockstep::data
