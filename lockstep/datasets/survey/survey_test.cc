#include "lockstep/datasets/survey/survey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/datasets/testing/packed_files.h"
#include "lockstep/datasets/testing/picture_files.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing::TempDir;
using ::testing::UnorderedElementsAre;
using testing::write_deep;
using testing_support::refusal;

Survey look(const std::string& path, SurveyOptions options = {}) {
  options.data = path;
  options.size = 32;
  return survey(options).value();
}

TEST(Surveys, CountWhatIsThere) {
  const TempDir dir;
  testing::write_classes(dir, "cats/", {""}, 3);
  write_deep(dir, "dogs/turned.jpg",
             testing::text_of(image::encode_jpeg(image::testing_support::picture({90, 30}), {.orientation = 6})));
  write_deep(dir, "dogs/grey.png",
             testing::text_of(image::encode_png(image::testing_support::picture({20, 200}, 1), {.bits = 16})));
  write_deep(dir, "dogs/alpha.png",
             testing::text_of(
                 image::encode_png(image::testing_support::picture({50, 50}), {.colour = image::PngColour::kAlpha})));
  for (const int workers : {1, 3}) {
    const Survey found = look(dir.path(), {.workers = workers});
    ASSERT_EQ(found.parts.size(), 1u);
    const PartSurvey& part = found.parts[0];
    EXPECT_EQ(part.samples, 6);
    EXPECT_THAT(part.class_counts, ElementsAre(3, 3));
    EXPECT_EQ(part.width.least, 20);
    EXPECT_EQ(part.width.most, 50);
    EXPECT_EQ(part.height.most, 200);
    EXPECT_THAT(part.formats, ElementsAre(Pair("JPEG", 4), Pair("PNG", 2)));
    EXPECT_THAT(part.colours, ElementsAre(Pair("16-bit grey", 1), Pair("colour", 4), Pair("colour with alpha", 1)));
    EXPECT_EQ(part.turned, 1);
    EXPECT_EQ(part.decoded, 6);
    EXPECT_GT(part.decode_ns, 0);
    EXPECT_THAT(part.sound, ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_TRUE(found.trainable()) << found.problems.front();
    EXPECT_THAT(found.test, HasSubstr("the training samples themselves"));
  }
}

TEST(Surveys, TellInksFromColours) {
  const TempDir dir;
  testing::write_classes(dir, "cats/", {""}, 1);
  write_deep(dir, "dogs/inks.jpg",
             testing::text_of(image::encode_jpeg(image::testing_support::picture({40, 30}), {.cmyk = true})));
  EXPECT_THAT(look(dir.path()).parts.at(0).colours, ElementsAre(Pair("CMYK", 1), Pair("colour", 1)));
}

// A file is there, whether it can be read or not.
TEST(Surveys, CountTheFormatsOfDamagedFiles) {
  const TempDir dir;
  testing::write_classes(dir, "cats/", {""}, 2);
  write_deep(dir, "cats/cut.jpg", testing::jpeg().substr(0, 400));
  write_deep(dir, "cats/cut_header.jpg", testing::jpeg().substr(0, 12));
  write_deep(dir, "cats/page.jpg", "<html>");
  write_deep(dir, "cats/some.png", testing::png().substr(0, testing::png().size() / 2));
  for (const bool quick : {false, true}) {
    const PartSurvey part = look(dir.path(), {.quick = quick}).parts.at(0);
    EXPECT_THAT(part.formats, ElementsAre(Pair("JPEG", 4), Pair("PNG", 1), Pair("unknown", 1))) << quick;
    EXPECT_EQ(part.samples, 6);
  }
}

TEST(Surveys, SayWhatWouldBeHeldOut) {
  const TempDir dir;
  testing::write_classes(dir, "", {"cats", "dogs"}, 10);
  const Survey found = look(dir.path());
  EXPECT_THAT(found.train, HasSubstr("18 of 20 JPEGs"));
  EXPECT_THAT(found.validation, AllOf(HasSubstr("2 of 20 JPEGs"), HasSubstr("10 % held out")));
  EXPECT_EQ(found.test, "");
}

TEST(Surveys, ListAllThatIsWrongWithClassFolders) {
  const TempDir dir;
  testing::write_classes(dir, "train/", {"cats", "dogs"}, 2);
  testing::write_classes(dir, "val/", {"cats", "eels"}, 1);
  write_deep(dir, "train/stray.jpg", testing::jpeg());
  std::filesystem::create_directory(dir / "train/newts");
  std::filesystem::create_symlink("nowhere", dir / "train/cats/link.jpg");
  write_deep(dir, "train/cats/page.jpg", "<html>");
  write_deep(dir, "train/dogs/cut.jpg", testing::jpeg().substr(0, 400));
  write_deep(dir, "val/cats/empty.png", "");
  const Survey found = look(dir.path());
  EXPECT_THAT(found.problems,
              UnorderedElementsAre(HasSubstr("stray.jpg: an image beside"), HasSubstr("newts: a class folder without"),
                                   HasSubstr("link.jpg: can't be looked at"), HasSubstr("page.jpg: it is no image"),
                                   HasSubstr("cut.jpg: "), HasSubstr("val/eels: a class that the training part"),
                                   HasSubstr("empty.png: the file is empty")));
  EXPECT_EQ(found.parts.at(0).samples, 6);
  EXPECT_THAT(found.parts.at(0).damaged, ::testing::SizeIs(2));
  EXPECT_THAT(found.parts.at(1).damaged, ::testing::SizeIs(1));
}

void write_pair(const TempDir& dir, const std::string& name, const image::Pixels& mask) {
  write_deep(dir, "imgs/" + name + ".png", testing::png({40, 30}, 1));
  write_deep(dir, "masks/" + name + ".png", testing::text_of(image::encode_png(mask)));
}

image::Pixels half_mask(uint8_t value) {
  image::Pixels mask = image::testing_support::flat({40, 30}, 1, 0);
  for (int y = 0; y < 30; ++y) std::fill_n(mask.row(y), 10, value);
  return mask;
}

TEST(Surveys, CountThePixelsOfMasks) {
  const TempDir dir;
  write_pair(dir, "1", half_mask(9));
  write_pair(dir, "2", half_mask(200));
  const Survey found = look(dir.path());
  EXPECT_TRUE(found.has_masks());
  EXPECT_THAT(found.parts.at(0).mask_pixels, ElementsAre(Pair(0, 1800), Pair(9, 300), Pair(200, 300)));
  EXPECT_THAT(found.train, HasSubstr("200 -> class 2"));
  EXPECT_TRUE(found.trainable());
}

TEST(Surveys, DecodeEachMaskOnce) {
  const TempDir dir;
  write_pair(dir, "1", half_mask(9));
  write_pair(dir, "2", half_mask(200));
  const SurveyCallbacks callbacks{.on_progress = [&](int64_t done, int64_t samples) {
    if (done == samples) write_deep(dir, "masks/2.png", "damaged from now on");
  }};
  const Survey found = survey({.data = dir.path()}, callbacks).value();
  EXPECT_TRUE(found.trainable()) << found.problems.front();
  EXPECT_THAT(found.train, HasSubstr("200 -> class 2"));
}

TEST(Surveys, ListAllThatIsWrongWithPairs) {
  const TempDir dir;
  write_pair(dir, "1", half_mask(9));
  write_pair(dir, "other_size", image::testing_support::flat({41, 30}, 1, 0));
  write_deep(dir, "imgs/lonely.png", testing::png());
  write_deep(dir, "masks/lost.png", testing::png());
  write_deep(dir, "masks/lost_too.png", testing::png());
  write_deep(dir, "imgs/1.jpg", testing::jpeg());
  EXPECT_THAT(look(dir.path()).problems,
              UnorderedElementsAre(HasSubstr("other_size.png: a mask of 41 x 30"),
                                   HasSubstr("lonely.png: an image without"), HasSubstr("lost.png: a mask without"),
                                   HasSubstr("lost_too.png: a mask without"), HasSubstr("has the same name")));
}

TEST(Surveys, FindWhatOnlyTheWholeCanSay) {
  const TempDir dir;
  write_pair(dir, "1", half_mask(0));
  EXPECT_THAT(look(dir.path()).problems, ElementsAre(HasSubstr("all masks have one value alone (0)")));
}

TEST(Surveys, OfWhatIsNoDataHaveOneProblem) {
  const TempDir dir;
  const Survey found = look(dir.path());
  EXPECT_THAT(found.problems, ElementsAre(HasSubstr("no images; looked for class folders")));
  EXPECT_TRUE(found.parts.empty());
}

TEST(Surveys, LookAtHeadersAlone) {
  const TempDir dir;
  testing::write_classes(dir, "", {"cats", "dogs"}, 2);
  write_deep(dir, "dogs/page.jpg", "<html>");
  const PartSurvey whole = look(dir.path()).parts.at(0), quick = look(dir.path(), {.quick = true}).parts.at(0);
  EXPECT_EQ(whole.decoded, 4);
  EXPECT_EQ(quick.decoded, 0);
  EXPECT_EQ(quick.damaged, whole.damaged);
  EXPECT_EQ(quick.width.least, whole.width.least);
  const TempDir pairs;
  write_pair(pairs, "1", half_mask(9));
  EXPECT_TRUE(look(pairs.path(), {.quick = true}).parts.at(0).mask_pixels.empty());
}

TEST(Surveys, EndWhenTheyAreAskedTo) {
  const TempDir dir;
  testing::write_classes(dir, "", {"cats"}, 5);
  int64_t looked = 0;
  const SurveyCallbacks callbacks{.on_progress = [&](int64_t done, int64_t) { looked = done; },
                                  .stops = [&] { return looked == 2; }};
  EXPECT_FALSE(survey({.data = dir.path()}, callbacks));
}

TEST(Surveys, OfPackedDataCompareChecksums) {
  const TempDir dir;
  testing::write_packed(dir.path(), {{testing::jpeg(), testing::png()}});
  const Survey fine = look(dir.path(), {.verify = true});
  EXPECT_TRUE(fine.trainable());
  EXPECT_THAT(fine.verified, HasSubstr("1 shard, "));
  EXPECT_TRUE(look(dir.path()).trainable());
  std::fstream file(dir / "shard-0.lks", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(200);
  file.put('\x01').put('\x02');
  file.close();
  EXPECT_THAT(look(dir.path(), {.verify = true}).problems, ElementsAre(HasSubstr("shard-0.lks: record 0")));
  EXPECT_THAT(look(dir.path()).problems, ElementsAre(HasSubstr("shard-0.lks: record 0")));
  const TempDir classes;
  testing::write_classes(classes, "", {"cats"}, 1);
  EXPECT_THAT(refusal([&] { look(classes.path(), {.verify = true}); }), HasSubstr("is no packed data"));
}

TEST(Surveys, OfPackedDataOpenTheirParts) {
  const TempDir dir;
  for (const char* part : {"train", "val"}) std::filesystem::create_directory(dir / part);
  testing::write_packed(dir / "train", {{testing::jpeg(), testing::png()}});
  testing::write_packed(dir / "val", {});
  EXPECT_THAT(look(dir.path(), {.verify = true}).problems, ElementsAre(HasSubstr("val: packed data without images")));
}

}  // namespace
}  // namespace lockstep::datasets
