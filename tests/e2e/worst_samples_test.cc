// `lockstep eval --worst N --out sheet.png`: the samples on which a network does worst, for people to look at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "pictures.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

using ::testing::HasSubstr;

// The sheet and the list of `--worst 5`, the same on 1, 2 and 4 ranks.
nlohmann::json expect_same_on_all_ranks(const TempDir& dir, const std::string& run, const Words& more) {
  nlohmann::json one;
  std::string sheet;
  for (const std::string nproc : {"1", "2", "4"}) {
    const std::string path = dir / ("sheet" + nproc + ".png");
    const auto result = lockstep(Words{"eval", run, "--worst", "5", "--out", path, "--json", "--nproc", nproc,
                                       "--threads", "1", "--batch-size", "3"} +
                                 more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto all = nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
    if (!all.contains("worst")) return ADD_FAILURE() << result.out, one;
    if (one.is_null()) one = all.at("worst"), sheet = read_file(path);
    EXPECT_EQ(all.at("worst"), one) << nproc << " ranks";
    EXPECT_EQ(read_file(path), sheet) << nproc << " ranks";
  }
  EXPECT_FALSE(sheet.empty());
  EXPECT_EQ(one.size(), 5U);
  const auto better = [](const auto& a, const auto& b) { return a.at("score") < b.at("score"); };
  EXPECT_TRUE(std::is_sorted(one.begin(), one.end(), better)) << one;
  return one;
}

TEST(WorstSamples, OfClassesAreTheSameOnAnyNumberOfRanks) {
  const TempDir dir;
  const auto worst = expect_same_on_all_ranks(dir, finished_run(), {});
  EXPECT_TRUE(worst.at(0).contains("probability"));
  const auto shown = lockstep({"eval", finished_run(), "--worst", "2", "--out", dir / "sheet.png"});
  EXPECT_THAT(shown.out, HasSubstr("red frames are wrong, green ones right\n  "));
  EXPECT_THAT(shown.out, HasSubstr(": is " + worst.at(0).at("true").get<std::string>() + " (0."));
}

TEST(WorstSamples, OfMasksAreTheSameOnAnyNumberOfRanks) {
  const TempDir dir;
  write_image_and_mask_folders(dir / "pairs", 20);
  const std::string run = dir / "run";
  ASSERT_EQ(
      lockstep(
          {"train",   "unet", "--data",       dir / "pairs", "--size",  "64", "--crop",       "32", "--width", "2",
           "--steps", "4",    "--batch-size", "4",           "--nproc", "2",  "--validation", "50", "--out",   run},
          ".", std::chrono::seconds(200))
          .exit_code,
      0);
  const auto worst = expect_same_on_all_ranks(dir, run, {});
  EXPECT_THAT(worst.at(0).at("sample").get<std::string>(), HasSubstr("imgs/"));
  EXPECT_FALSE(worst.at(0).contains("probability"));
  const auto shown = lockstep({"eval", run});
  EXPECT_THAT(shown.out, HasSubstr(" on 10 validation samples of ")) << "there is no test part";
}

// A sample that can't be read has no score, and those after it keep their names.
TEST(WorstSamples, AreNamedAroundThoseThatCantBeRead) {
  const TempDir dir;
  write_class_folders(dir / "photos", 2, 3);
  const std::string run = dir / "run";
  ASSERT_EQ(lockstep({"train", "imagenet", "--data", dir / "photos", "--arch", "mobilenet_v2", "--size", "64",
                      "--steps", "1", "--batch-size", "2", "--lanes", "2", "--validation", "0", "--out", run})
                .exit_code,
            0);
  std::filesystem::resize_file(dir / "photos/class_00/1.jpg", 300);
  for (const std::string nproc : {"1", "2"}) {
    const auto result =
        lockstep({"eval", run, "--data", dir / "photos", "--split", "train", "--skip-bad", "1", "--worst", "6", "--out",
                  dir / "sheet.png", "--json", "--nproc", nproc, "--batch-size", "2"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    std::vector<std::string> names;
    const auto all = nlohmann::json::parse(result.out);
    for (const auto& each : all.at("worst")) {
      const std::string name = each.at("sample");
      names.push_back(name.substr(name.find("class_")));
      EXPECT_EQ(each.at("true"), names.back().substr(0, 8));
    }
    EXPECT_THAT(names, ::testing::UnorderedElementsAre("class_00/0.jpg", "class_00/2.jpg", "class_01/0.jpg",
                                                       "class_01/1.jpg", "class_01/2.jpg"))
        << nproc;
  }
}

TEST(WorstSamples, APictureThatHasNoPlaceIsRefusedAtOnce) {
  const auto none = lockstep({"eval", finished_run(), "--worst", "2", "--out", "/no/where.png"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("--out /no/where.png: there is no folder /no; make it first"));
}

}  // namespace
}  // namespace lockstep::e2e
