#include "lockstep/datasets/survey/survey_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lockstep/datasets/testing/picture_files.h"
#include "lockstep/image/mask_value.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Survey example() {
  Survey survey{.path = "photos"};
  survey.stored.form = Kind::kClassFolders;
  survey.stored.parts.resize(1);
  survey.train = "8 of 9 JPEGs";
  survey.validation = "1 of 9 JPEGs";
  survey.parts.push_back({.name = "",
                          .text = "9 JPEGs of 8 classes in photos",
                          .samples = 9,
                          .bytes = 3 << 20,
                          .class_names = {"a", "b", "c", "d", "e", "f", "g", "h\n"},
                          .class_counts = {1, 2, 1, 1, 1, 1, 1, 1},
                          .width = {40, 50, 60},
                          .height = {30, 30, 30},
                          .formats = {{"JPEG", 9}},
                          .colours = {{"colour", 7}, {"grey", 2}},
                          .turned = 3,
                          .decoded = 9,
                          .decode_ns = 18'000'000});
  return survey;
}

TEST(SurveyText, SaysWhatIsThereAndHowToTrainOnIt) {
  const std::string text = text_of(example());
  EXPECT_THAT(text, HasSubstr("photos: class folders\n"));
  EXPECT_THAT(text, HasSubstr("9 JPEGs of 8 classes in photos, 3 MiB"));
  EXPECT_THAT(text, HasSubstr("8; most: b 2, a 1, c 1; least: h\\n 1, g 1, f 1"));
  EXPECT_THAT(text, HasSubstr("width 40 to 60 (median 50), height 30"));
  EXPECT_THAT(text, HasSubstr("9 JPEG; 7 colour, 2 grey; 3 turned by EXIF"));
  EXPECT_THAT(text, HasSubstr("2.00 ms a sample: 500 a second, a thread"));
  EXPECT_THAT(text, HasSubstr("validates on 1 of 9 JPEGs"));
  EXPECT_THAT(text, HasSubstr("lockstep train imagenet --data photos\n"));
}

TEST(SurveyText, OfEqualCountsSaysOne) {
  Survey survey = example();
  survey.parts[0].class_counts[1] = 1;
  EXPECT_THAT(text_of(survey), HasSubstr("8: 1 image each"));
}

TEST(SurveyText, GivesTheSharesOfMasks) {
  Survey survey = example();
  survey.stored.kind = Packed::kMasks;
  survey.parts[0].class_counts.clear();
  survey.parts[0].mask_pixels = {{0, 712}, {255, 288}};
  EXPECT_THAT(text_of(survey), AllOf(HasSubstr("0: 71.2 %, 255: 28.8 %"), HasSubstr("train unet --data photos")));
  EXPECT_EQ(json_of(survey).at("parts").at(0).at("mask_values").at("255"), 0.288);
  EXPECT_EQ(json_of(survey).at("recipe"), "unet");
  survey.parts[0].mask_pixels = {{0, 712}, {image::mask_value(255, 0, 0), 288}};
  EXPECT_THAT(text_of(survey), HasSubstr("0: 71.2 %, #ff0000: 28.8 %"));
  EXPECT_EQ(json_of(survey).at("parts").at(0).at("mask_values").at("#ff0000"), 0.288);
}

TEST(SurveyText, NamesEveryProblem) {
  Survey survey = example();
  survey.problems = {"1.jpg: cut", "2.jpg: empty"};
  EXPECT_THAT(text_of(survey), AllOf(HasSubstr("1.jpg: cut\n"), HasSubstr("2.jpg: empty\n"), Not(HasSubstr("--data"))));
  const auto json = json_of(survey);
  EXPECT_FALSE(json.at("trainable").get<bool>());
  EXPECT_EQ(json.at("problems").size(), 2u);
  EXPECT_EQ(json.at("parts").at(0).at("classes").at("b"), 2);
  EXPECT_EQ(json.at("parts").at(0).at("width").at("median"), 50);
}

TEST(SurveyText, OfChecksumsIsShort) {
  Survey survey{.path = "packed"};
  survey.verified = "2 shards, 3 MiB";
  EXPECT_THAT(text_of(survey),
              AllOf(HasSubstr("2 shards, 3 MiB"), HasSubstr("all is as checksums and record counts say")));
  EXPECT_EQ(json_of(survey).at("verified"), "2 shards, 3 MiB");
}

}  // namespace
}  // namespace lockstep::datasets
