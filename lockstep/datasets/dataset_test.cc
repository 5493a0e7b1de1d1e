// What every Dataset promises, on every implementation.
#include "lockstep/data/dataset.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <thread>

#include "lockstep/data/read_batch.h"
#include "lockstep/data/sample_rows.h"
#include "lockstep/data/subset.h"
#include "lockstep/data/tensor_dataset.h"
#include "lockstep/datasets/cifar.h"
#include "lockstep/datasets/class_folders.h"
#include "lockstep/datasets/digits/testing/mnist_files.h"
#include "lockstep/datasets/drawn/shape_masks.h"
#include "lockstep/datasets/drawn/synthetic_digits.h"
#include "lockstep/datasets/drawn/textured_shapes.h"
#include "lockstep/datasets/image_dataset.h"
#include "lockstep/datasets/mnist.h"
#include "lockstep/datasets/packed_images.h"
#include "lockstep/datasets/pair_dataset.h"
#include "lockstep/datasets/pairs.h"
#include "lockstep/datasets/testing/cifar_files.h"
#include "lockstep/datasets/testing/packed_files.h"
#include "lockstep/datasets/testing/picture_files.h"
#include "lockstep/image/crops.h"

namespace lockstep::datasets {
namespace {

struct Implementation {
  const char* name;
  std::function<std::shared_ptr<const data::Dataset>()> open;
  bool masks = false;
};

std::shared_ptr<const data::Dataset> open_idx() {
  const testing::TempDir dir;
  write_mnist(dir, ".gz");
  return open_mnist(dir.path()).train;
}

std::shared_ptr<const data::Dataset> open_json() {
  const testing::TempDir dir;
  const std::string part = testing::json_part({1, 2, 3, 4, 5, 6, 7, 8, 9, 0});
  return open_mnist(dir.write("mnist.json.gz", testing::gzip("[" + part + "," + part + "," + part + "]"))).train;
}

std::shared_ptr<const data::Dataset> open_digits() { return synthetic_digits({.seed = 1, .train_size = 30}).train; }

std::shared_ptr<const data::Dataset> open_textures() {
  return textured_shapes({.seed = 1, .side = 16, .train_size = 30}).train;
}

std::shared_ptr<const data::Dataset> open_masks() {
  return shape_masks({.seed = 1, .side = 16, .train_size = 30}).train;
}

std::shared_ptr<const data::Dataset> open_subset() {
  return data::subset(open_digits(), {29, 3, 5, 7, 11, 13, 17, 19, 23, 0}, "ten of thirty");
}

std::shared_ptr<const data::Dataset> open_tensors() {
  return std::make_shared<data::TensorDataset>(at::arange(60, at::kFloat).view({20, 3}) / 60, at::arange(20));
}

std::shared_ptr<const data::Dataset> open_folders() {
  static const testing::TempDir dir;
  if (std::filesystem::is_empty(dir.path())) testing::write_classes(dir, "", {"cats", "dogs", "eels"}, 4);
  const auto as_they_are = std::make_shared<image::Pipeline>(
      std::vector<std::shared_ptr<const image::Transform>>{image::resize_to({20, 16})});
  return image_dataset(class_folders(dir.path()), {.train = as_they_are, .evaluation = as_they_are, .result = {20, 16}},
                       true);
}

std::shared_ptr<const data::Dataset> open_pairs_of_files() {
  static const testing::TempDir dir;
  if (std::filesystem::is_empty(dir.path())) {
    const auto mask = testing::text_of(image::encode_png(image::testing_support::flat({30, 20}, 1, 255)));
    for (uint64_t i = 0; i < 12; ++i) {
      testing::write_deep(dir, cat("imgs/", i, ".jpg"), testing::jpeg({30, 20}, i));
      testing::write_deep(dir, cat("masks/", i, ".png"), mask);
    }
  }
  const auto as_they_are = std::make_shared<image::Pipeline>(
      std::vector<std::shared_ptr<const image::Transform>>{image::resize_to({20, 16})});
  return pair_dataset(pair_files(find_pairs(dir.path())), image::LabelMap({0, 255}),
                      {.train = as_they_are, .evaluation = as_they_are, .result = {20, 16}}, true);
}

std::shared_ptr<const data::Dataset> open_cifar() {
  static const testing::TempDir dir;
  if (std::filesystem::is_empty(dir.path())) testing::write_cifar10(dir);
  const auto as_they_are = std::make_shared<image::Pipeline>();
  return image_dataset(cifar(dir.path(), Cifar::k10, CifarPart::kTrain),
                       {.train = as_they_are, .evaluation = as_they_are, .result = kCifarSize}, true);
}

std::shared_ptr<const data::Dataset> open_packed() {
  static const testing::TempDir dir;
  if (std::filesystem::is_empty(dir.path())) {
    std::vector<std::string> images;
    for (uint64_t i = 0; i < 12; ++i) images.push_back(testing::jpeg({30, 20}, i));
    testing::write_packed(dir.path(), {images, images});
  }
  const auto as_they_are = std::make_shared<image::Pipeline>();
  return image_dataset(packed_images(dir.path()), {.train = as_they_are, .evaluation = as_they_are, .result = {30, 20}},
                       true);
}

class DatasetTest : public ::testing::TestWithParam<Implementation> {
 protected:
  std::vector<int64_t> target_shape(int64_t rows) const {
    if (!GetParam().masks) return {rows};
    return {rows, set_->sample_shape()[1], set_->sample_shape()[2]};
  }

  const std::shared_ptr<const data::Dataset> set_ = GetParam().open();
};

INSTANTIATE_TEST_SUITE_P(
    All, DatasetTest,
    ::testing::Values(Implementation{"idx", open_idx}, Implementation{"json", open_json},
                      Implementation{"digits", open_digits}, Implementation{"textures", open_textures},
                      Implementation{"masks", open_masks, true}, Implementation{"folders", open_folders},
                      Implementation{"cifar", open_cifar}, Implementation{"packed", open_packed},
                      Implementation{"pairs", open_pairs_of_files, true}, Implementation{"subset", open_subset},
                      Implementation{"tensors", open_tensors}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(DatasetTest, GivesTensorsReadyForAModel) {
  ASSERT_GE(set_->size(), 10);
  const data::Batch batch = data::read_batch(*set_, std::vector<int64_t>{0, set_->size() - 1, 4});
  EXPECT_EQ(batch.size(), 3);
  std::vector<int64_t> shape = set_->sample_shape();
  shape.insert(shape.begin(), 3);
  EXPECT_EQ(batch.data().sizes(), shape);
  EXPECT_EQ(batch.data().scalar_type(), at::kFloat);
  EXPECT_TRUE(batch.data().is_contiguous());
  EXPECT_GE(batch.data().min().item<float>(), 0.f);
  EXPECT_LE(batch.data().max().item<float>(), 1.f);
  EXPECT_EQ(batch.target().sizes(), target_shape(3));
  EXPECT_EQ(batch.target().scalar_type(), at::kLong);
  EXPECT_GE(batch.target().min().item<int64_t>(), 0);
  EXPECT_LT(batch.target().max().item<int64_t>(), set_->classes());
  EXPECT_FALSE(set_->description().empty());
}

TEST_P(DatasetTest, KeepsTheOrderAskedForAndRepeats) {
  const data::Batch batch = data::read_batch(*set_, std::vector<int64_t>{7, 2, 7});
  for (const int row : {0, 1, 2}) {
    const data::Batch alone = data::read_batch(*set_, std::vector<int64_t>{row == 1 ? 2 : 7});
    EXPECT_TRUE(at::equal(batch.data()[row], alone.data()[0]));
    EXPECT_TRUE(at::equal(batch.target()[row], alone.target()[0]));
  }
}

// What a row holds before, and what lies beside it, make no difference and stay as they are.
TEST_P(DatasetTest, WritesItsRowsWholeAndNothingElse) {
  const data::Batch wanted = data::read_batch(*set_, std::vector<int64_t>{5});
  for (const int before : {0, 77}) {
    data::SampleRows rows(set_->fields(), 3);
    data::Batch batch = rows.batch();
    batch.for_each_tensor([&](at::Tensor& tensor) { tensor.fill_(before); });
    data::ReadStats stats;
    set_->read(5, {.seed = 1, .epoch = 2, .number = 5}, rows.row(1), stats);
    for (size_t i = 0; i < batch.tensors.size(); ++i) {
      const auto& [name, tensor] = batch.tensors[i];
      EXPECT_TRUE(at::equal(tensor[1], wanted.tensors[i].second[0])) << name;
      EXPECT_TRUE(tensor[0].eq(before).all().item<bool>()) << name;
      EXPECT_TRUE(tensor[2].eq(before).all().item<bool>()) << name;
    }
  }
}

TEST_P(DatasetTest, ItsFirstTensorIsData) {
  const auto fields = set_->fields();
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(fields[0].name, "data");
  EXPECT_EQ(fields[1].name, "target");
}

TEST_P(DatasetTest, KnowsItsClassesAndNames) {
  EXPECT_EQ(set_->name_of(3).empty(), false);
  for (const int64_t index : {0, 7}) {
    const int64_t known = set_->class_of(index);
    const data::Batch batch = data::read_batch(*set_, std::vector<int64_t>{index});
    if (known != -1) EXPECT_EQ(batch.target().item<int64_t>(), known);
  }
}

TEST_P(DatasetTest, IsToldFromOthersByItsFingerprint) {
  EXPECT_EQ(set_->fingerprint(), GetParam().open()->fingerprint()) << "it depends on the samples alone";
  std::vector<int64_t> part(static_cast<size_t>(set_->size() - 1));
  std::iota(part.begin(), part.end(), 0);
  const auto less = data::subset(set_, part, "less");
  EXPECT_NE(set_->fingerprint(), less->fingerprint());
  part.front() = set_->size() - 1;
  EXPECT_NE(data::subset(set_, part, "other")->fingerprint(), less->fingerprint());
}

TEST_P(DatasetTest, GivesNoRowsForNoIndices) {
  const data::Batch batch = data::read_batch(*set_, {});
  std::vector<int64_t> shape = set_->sample_shape();
  shape.insert(shape.begin(), 0);
  EXPECT_EQ(batch.data().sizes(), shape);
  EXPECT_EQ(batch.target().sizes(), target_shape(0));
}

TEST_P(DatasetTest, RefusesNumbersOutOfRange) {
  EXPECT_THROW(data::read_batch(*set_, std::vector<int64_t>{0, set_->size()}), BugError);
  EXPECT_THROW(data::read_batch(*set_, std::vector<int64_t>{-1}), BugError);
}

TEST_P(DatasetTest, GivesTheSameBitsToSeveralThreadsAtOnce) {
  const std::vector<int64_t> indices = {9, 0, 5, 3};
  const data::Batch expected = data::read_batch(*set_, indices, 2);
  std::vector<int> equal(4);
  std::vector<std::thread> threads;
  for (int& result : equal) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const data::Batch batch = data::read_batch(*set_, indices, 2);
        result += at::equal(batch.data(), expected.data()) && at::equal(batch.target(), expected.target());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(equal, std::vector<int>(4, 20));
}

}  // namespace
}  // namespace lockstep::datasets
