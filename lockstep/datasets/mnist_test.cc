#include "lockstep/datasets/mnist.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/data/read_batch.h"
#include "lockstep/datasets/digits/testing/mnist_files.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using testing::data_error;
using testing::gzip;
using ::testing::HasSubstr;
using testing::idx_images;
using testing::idx_labels;
using testing::TempDir;

constexpr const char* kSharedMnist = LOCKSTEP_SOURCE_DIR "/../shared/data/mnist";

std::string json_text() {
  return "[" + testing::json_part({3, 9}) + "," + testing::json_part({1}) + "," + testing::json_part({7}) + "]";
}

TEST(Mnist, OpensPlainAndPackedDirectories) {
  for (const char* ending : {"", ".gz"}) {
    const TempDir dir;
    write_mnist(dir, ending);
    const data::Splits splits = open_mnist(dir.path());
    EXPECT_EQ(splits.train->size(), 12);
    EXPECT_EQ(splits.test->size(), 5);
    EXPECT_EQ(splits.validation, nullptr);
    EXPECT_EQ(splits.train->description(), "MNIST train from " + dir.path() + ", 12 images of 28×28");
    const data::Batch batch = data::read_batch(*splits.train, std::vector<int64_t>{11, 0});
    EXPECT_EQ(batch.target()[0].item<int64_t>(), 1);
    EXPECT_EQ(batch.data()[1][0][0][1].item<float>(), 7.f / 255.f);
    EXPECT_EQ(batch.data()[0][0][0][0].item<float>(), static_cast<float>((7 * 11 * 784) % 256) / 255.f);
  }
}

TEST(Mnist, OpensTheJsonFileByNameOrDirectory) {
  const TempDir dir;
  const std::string path = dir.write("mnist.json.gz", gzip(json_text()));
  for (const std::string& given : {path, dir.path()}) {
    const data::Splits splits = open_mnist(given);
    EXPECT_EQ(splits.train->size(), 2);
    ASSERT_NE(splits.validation, nullptr);
    EXPECT_EQ(data::read_batch(*splits.validation, std::vector<int64_t>{0}).target().item<int64_t>(), 1);
    EXPECT_EQ(splits.test->size(), 1);
    EXPECT_THAT(splits.test->description(), HasSubstr(path));
  }
}

TEST(Mnist, PrefersIdxFiles) {
  const TempDir dir;
  write_mnist(dir);
  dir.write("mnist.json.gz", gzip(json_text()));
  EXPECT_EQ(open_mnist(dir.path()).train->size(), 12);
}

TEST(Mnist, NamesWhatIsMissing) {
  const TempDir dir;
  EXPECT_THAT(data_error([&] { open_mnist(dir.path()); }),
              AllOf(HasSubstr(dir.path()), HasSubstr("train-images-idx3-ubyte"), HasSubstr("mnist.json.gz")));
  EXPECT_THAT(data_error([&] { open_mnist(dir / "none"); }), AllOf(HasSubstr(dir / "none"), HasSubstr("no such file")));
  write_mnist(dir);
  std::filesystem::remove(dir / "t10k-labels-idx1-ubyte");
  EXPECT_THAT(data_error([&] { open_mnist(dir.path()); }), HasSubstr("t10k-labels-idx1-ubyte (or"));
}

// The error of opening a sound directory in which one file was replaced.
std::string error_with(const std::string& name, const std::string& content) {
  const TempDir dir;
  write_mnist(dir);
  dir.write(name, content);
  const std::string line = data_error([&] { open_mnist(dir.path()); });
  EXPECT_THAT(line, HasSubstr(dir / name));
  return line;
}

TEST(Mnist, ChecksThatImagesAndLabelsBelongTogether) {
  EXPECT_THAT(error_with("train-labels-idx1-ubyte", idx_labels(11)), HasSubstr("12 images, but"));
  EXPECT_THAT(error_with("t10k-images-idx3-ubyte", idx_images(5, 32, 32)), HasSubstr("32×32"));
  std::string labels = idx_labels(12);
  labels[8 + 4] = 13;
  EXPECT_THAT(error_with("train-labels-idx1-ubyte", labels), HasSubstr("label 4 (byte 12) is 13"));
  EXPECT_THAT(error_with("train-labels-idx1-ubyte", idx_images(12)), HasSubstr("holds images where labels"));
}

TEST(Mnist, RefusesAnEmptySet) {
  const TempDir dir;
  write_mnist(dir);
  dir.write("train-images-idx3-ubyte", idx_images(0));
  dir.write("train-labels-idx1-ubyte", idx_labels(0));
  EXPECT_THAT(data_error([&] { open_mnist(dir.path()); }),
              HasSubstr("train-images-idx3-ubyte: byte 4: holds no images"));
}

TEST(Mnist, RefusesADirectoryInPlaceOfAFile) {
  const TempDir dir;
  write_mnist(dir);
  std::filesystem::remove(dir / "train-images-idx3-ubyte");
  std::filesystem::create_directory(dir / "train-images-idx3-ubyte");
  EXPECT_THAT(data_error([&] { open_mnist(dir.path()); }), HasSubstr("is a directory"));
}

TEST(Mnist, ReadsTheRealDigits) {
  if (!std::filesystem::exists(kSharedMnist)) GTEST_SKIP() << "no " << kSharedMnist;
  const data::Splits splits = open_mnist(kSharedMnist);
  EXPECT_EQ(splits.train->size(), 7000);
  EXPECT_EQ(splits.test->size(), 1000);
  const data::Splits json = open_mnist(std::string(kSharedMnist) + "/mnist.json.gz");
  ASSERT_EQ(json.train->size(), 1500);
  ASSERT_EQ(json.validation->size(), 250);
  ASSERT_EQ(json.test->size(), 250);
  const std::vector<int64_t> some = {0, 7, 1499};
  const data::Batch from_json = data::read_batch(*json.train, some);
  const data::Batch from_idx = data::read_batch(*splits.train, some);
  EXPECT_TRUE(at::equal(from_json.target(), from_idx.target()));
  EXPECT_TRUE(at::allclose(from_json.data(), from_idx.data(), 0, .0006));  // the JSON file rounds to 3 digits
}

}  // namespace
}  // namespace lockstep::datasets
