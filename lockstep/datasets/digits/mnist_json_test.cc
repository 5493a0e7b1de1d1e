#include "lockstep/datasets/digits/mnist_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/datasets/digits/testing/mnist_files.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using testing::data_error;
using testing::gzip;
using ::testing::HasSubstr;
using testing::json_image;
using testing::json_part;
using testing::TempDir;

std::string file_of(const std::string& train) { return "[" + train + "," + json_part({}) + "," + json_part({7}) + "]"; }

std::string error_of(const std::string& text) {
  const TempDir dir;
  const std::string path = dir.write("mnist.json.gz", text);
  const std::string line = data_error([&] { read_mnist_json(path); });
  EXPECT_THAT(line, HasSubstr(path));
  EXPECT_LT(line.size(), 400u);
  return line;
}

TEST(MnistJson, ReadsTheThreeParts) {
  const TempDir dir;
  const std::string text = file_of(json_part({3, 9, 0}));
  for (const std::string& content : {gzip(text), text}) {
    const MnistJson json = read_mnist_json(dir.write("f", content));
    EXPECT_EQ(json.train.labels, (std::vector<uint8_t>{3, 9, 0}));
    EXPECT_EQ(json.train.pixels, std::vector<float>(3 * 784, .25f));
    EXPECT_TRUE(json.validation.labels.empty());
    EXPECT_EQ(json.test.labels, (std::vector<uint8_t>{7}));
  }
}

TEST(MnistJson, TakesWholeNumbersAsPixelsAndFloatsAsLabels) {
  const TempDir dir;
  const MnistJson json = read_mnist_json(dir.write("f", file_of("[[" + json_image("1") + "],[4.0]]")));
  EXPECT_EQ(json.train.pixels[0], 1.f);
  EXPECT_EQ(json.train.labels[0], 4);
}

TEST(MnistJson, NamesTheBadPixelOrLabel) {
  EXPECT_THAT(error_of(file_of("[[" + json_image("0.5") + ",[0, 1.5]],[1]]")),
              HasSubstr("in train, image 1, pixel 1: a pixel of 1.5"));
  EXPECT_THAT(error_of(file_of("[[[-0.1]],[1]]")), HasSubstr("a pixel of -0.1"));
  EXPECT_THAT(error_of(file_of("[[[NaN]],[1]]")), HasSubstr("byte"));
  EXPECT_THAT(error_of(file_of("[[[1e999]],[1]]")), HasSubstr("1e999"));
  EXPECT_THAT(error_of(file_of("[[[null]],[1]]")), HasSubstr("image 0, pixel 0: null"));
  EXPECT_THAT(error_of(file_of("[[[\"0.5\"]],[1]]")), HasSubstr("text"));
  EXPECT_THAT(error_of(file_of("[[],[10]]")), HasSubstr("in train, label 0: a label of 10"));
  EXPECT_THAT(error_of(file_of("[[],[2.5]]")), HasSubstr("a label of 2.5"));
  EXPECT_THAT(error_of(file_of("[[],[-1]]")), HasSubstr("a label of -1"));
}

TEST(MnistJson, ChecksShapesAndCounts) {
  EXPECT_THAT(error_of(file_of("[[" + json_image("0", 783) + "],[1]]")), HasSubstr("783 pixels"));
  EXPECT_THAT(error_of(file_of("[[" + json_image("0", 785) + "],[1]]")), HasSubstr("more than the 784"));
  EXPECT_THAT(error_of(file_of("[[" + json_image("0") + "],[1, 2]]")), HasSubstr("in train: 1 images, but 2 labels"));
  EXPECT_THAT(error_of(file_of("[[" + json_image("0") + "]]")), HasSubstr("1 lists"));
  EXPECT_THAT(error_of(file_of("[[],[],[]]")), HasSubstr("third list"));
  EXPECT_THAT(error_of("[" + json_part({1}) + "]"), HasSubstr("1 parts"));
  EXPECT_THAT(error_of("[[[],[]],[[],[]],[[],[]],[[],[]]]"), HasSubstr("fourth part"));
  EXPECT_THAT(error_of("[1, 2]"), HasSubstr("number 1"));
  EXPECT_THAT(error_of("[[[[[0]]]]]"), HasSubstr("an array where a number"));
  EXPECT_THAT(error_of("[{\"train\": 1}]"), HasSubstr("object"));
}

TEST(MnistJson, RefusesDamageAndOtherFiles) {
  const std::string sound = file_of(json_part({1, 2}));
  EXPECT_THAT(error_of(sound.substr(0, 5000)), AllOf(HasSubstr("byte"), HasSubstr("damaged")));
  EXPECT_THAT(error_of(sound + "]"), HasSubstr("byte"));
  EXPECT_THAT(error_of(gzip(sound).substr(0, 60)), HasSubstr("damaged or cut short"));
  std::string damaged = gzip(sound);
  damaged[10] = '\x07';  // nothing of it can be unpacked
  EXPECT_THAT(error_of(damaged), HasSubstr("damaged or cut short"));
  EXPECT_THAT(error_of("{}"), HasSubstr("does not begin with '['"));
  EXPECT_THAT(error_of(""), HasSubstr("does not begin with '['"));
  EXPECT_THAT(error_of("[" + std::string(10 << 20, '[')), HasSubstr("an array where"));
  EXPECT_THAT(error_of(testing::idx_images(1)), HasSubstr("idx"));
}

}  // namespace
}  // namespace lockstep::datasets
