#include "lockstep/datasets/cifar.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/data/read_batch.h"
#include "lockstep/datasets/open_images.h"
#include "lockstep/datasets/testing/cifar_files.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using testing::data_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;

TEST(Cifar, TenHasFiveFilesToTrainOn) {
  const TempDir dir;
  testing::write_cifar10(dir);
  const auto images = cifar(dir.path(), Cifar::k10, CifarPart::kTrain);
  ASSERT_EQ(images->size(), 20);
  EXPECT_EQ(images->name_of(0), dir / "data_batch_1.bin: image 0");
  EXPECT_EQ(images->name_of(7), dir / "data_batch_2.bin: image 3");
  EXPECT_EQ(images->name_of(19), dir / "data_batch_5.bin: image 3");
  std::vector<uint8_t> memory;
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(images->class_of(i), i % 10);
    const Encoded encoded = images->read(i, memory);
    ASSERT_EQ(encoded.bytes.size(), 3072u);
    EXPECT_EQ(encoded.bytes[0], i) << "red";
    EXPECT_EQ(encoded.bytes[1024], i + 50) << "green";
    EXPECT_EQ(encoded.bytes[3071], i + 100) << "blue";
  }
  EXPECT_THAT(images->class_names(), ElementsAre("airplane", "automobile", "2", "3", "4", "5", "6", "7", "8", "9"));
  EXPECT_EQ(cifar(dir.path(), Cifar::k10, CifarPart::kTest)->size(), 4);
}

TEST(Cifar, HundredHasFineClasses) {
  const TempDir dir;
  testing::write_cifar100(dir);
  const auto images = cifar(dir.path(), Cifar::k100, CifarPart::kTrain);
  ASSERT_EQ(images->size(), 20);
  EXPECT_EQ(images->class_of(7), 77) << "and not the coarse class";
  EXPECT_EQ(images->class_names().size(), 100u);
  std::vector<uint8_t> memory;
  EXPECT_EQ(images->read(7, memory).bytes[0], 7);
}

TEST(Cifar, HasAFingerprintOfItsBytes) {
  const TempDir dir;
  testing::write_cifar10(dir);
  const auto fingerprint = [&] { return cifar(dir.path(), Cifar::k10, CifarPart::kTrain)->fingerprint(); };
  const std::string before = fingerprint();
  EXPECT_EQ(fingerprint(), before);
  std::string file = testing::cifar_file(8, 4, 1);
  file[100] ^= 1;
  dir.write("data_batch_3.bin", file);
  EXPECT_NE(fingerprint(), before);
}

TEST(Cifar, RefusesMissingAndDamagedFiles) {
  const TempDir dir;
  testing::write_cifar10(dir);
  const auto open = [&] { cifar(dir.path(), Cifar::k10, CifarPart::kTrain); };
  dir.write("data_batch_3.bin", std::string(3074, '\0'));
  EXPECT_THAT(data_error(open), AllOf(HasSubstr(dir / "data_batch_3.bin"), HasSubstr("no whole images of 3073")));
  dir.write("data_batch_3.bin", "");
  EXPECT_THAT(data_error(open), HasSubstr("no whole images"));
  dir.write("data_batch_3.bin", std::string(3073, 'x'));
  EXPECT_THAT(data_error(open), HasSubstr("byte 0: class 120"));
  std::filesystem::remove(dir / "data_batch_3.bin");
  EXPECT_THAT(data_error(open), HasSubstr("data_batch_3.bin: can't be read: No such file"));
}

TEST(Cifar, IsOpenedAsImages) {
  const TempDir dir;
  testing::write_cifar10(dir);
  const data::Splits splits = open_images({.path = dir.path(), .size = 32});
  EXPECT_EQ(splits.train->sample_shape(), (std::vector<int64_t>{3, 32, 32}));
  EXPECT_THAT(splits.train->description(), AllOf(HasSubstr("CIFAR-10, 20 images in"), HasSubstr("padding 4")));
  ASSERT_NE(splits.test, nullptr);
  EXPECT_EQ(splits.test->classes(), 10);
  EXPECT_TRUE(splits.train->class_names().empty()) << "batches.meta.txt has two of ten";
  dir.write("batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
  EXPECT_EQ(open_images({.path = dir.path(), .size = 32}).test->class_names().back(), "j");
  const at::Tensor data = data::read_batch(*splits.train->for_evaluation(), std::vector<int64_t>{3}).data();
  EXPECT_FLOAT_EQ(data[0][0][9][9].item<float>(), (3 / 255.f - 0.4914f) / 0.2470f);
  EXPECT_FLOAT_EQ(data[0][1][9][9].item<float>(), (53 / 255.f - 0.4822f) / 0.2435f);
  const TempDir other;
  testing::write_cifar100(other);
  EXPECT_EQ(open_images({.path = other.path(), .size = 64}).train->classes(), 100);
}

}  // namespace
}  // namespace lockstep::datasets
