// `lockstep data`: a look at a data set before anyone trains on it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "pictures.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(DataCommand, SaysWhatIsThere) {
  const TempDir dir;
  write_class_folders(dir / "pictures", 3, 10);
  const auto result = lockstep({"data", dir / "pictures", "--sheet", dir / "sheet.png", "--size", "64"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("pictures: class folders\n"), HasSubstr("30 JPEGs of 3 classes"),
                    HasSubstr("3: 10 images each"), HasSubstr("turned by EXIF"), HasSubstr("27 of 30 JPEGs"),
                    HasSubstr("10 % held out"), HasSubstr("lockstep train imagenet --data " + dir / "pictures")));
  EXPECT_THAT(result.out, HasSubstr("sheet.png"));
  EXPECT_GT(fs::file_size(dir / "sheet.png"), 10'000u);
}

TEST(DataCommand, OfMasksGivesOneJsonValue) {
  const TempDir dir;
  write_image_and_mask_folders(dir / "pairs", 4);
  const auto result = lockstep({"data", dir / "pairs", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_TRUE(json.at("trainable").get<bool>());
  EXPECT_EQ(json.at("recipe"), "unet");
  const auto& masks = json.at("parts").at(0).at("mask_values");
  EXPECT_NEAR(masks.at("0").get<double>() + masks.at("255").get<double>(), 1, 1e-9);
}

TEST(DataCommand, ListsEveryProblemAndEndsWith65) {
  const TempDir dir;
  write_class_folders(dir / "pictures", 2, 4);
  for (const char* name : {"a.jpg", "b.jpg", "c.jpg"}) write_file(dir / "pictures/class_01/" + name, "<html>");
  fs::create_directory(dir / "pictures/empty");
  const auto result = lockstep({"data", dir / "pictures"});
  EXPECT_EQ(result.exit_code, 65);
  for (const char* name : {"class_01/a.jpg", "class_01/b.jpg", "class_01/c.jpg", "pictures/empty"}) {
    EXPECT_THAT(result.out, HasSubstr(name));
  }
  EXPECT_THAT(result.out, Not(HasSubstr("lockstep train")));
  EXPECT_THAT(result.err, HasSubstr("pictures: 4 problems"));
  const auto json = lockstep({"data", dir / "pictures", "--json"});
  EXPECT_EQ(json.exit_code, 65);
  EXPECT_EQ(nlohmann::json::parse(json.out).at("problems").size(), 4u);
  const auto train = lockstep({"train", "imagenet", "--data", dir / "pictures", "--out", dir / "run"});
  EXPECT_EQ(train.exit_code, 65) << "as training, which names the first one";
}

TEST(DataCommand, OfWhatIsNotThereOrNoData) {
  const TempDir dir;
  EXPECT_EQ(lockstep({"data", dir / "none"}).exit_code, 2);
  EXPECT_EQ(lockstep({"data", dir.path()}).exit_code, 65);
  const auto sheet = lockstep({"data", dir.path(), "--quick", "--sheet", "a.png"});
  EXPECT_EQ(sheet.exit_code, 2);
  EXPECT_THAT(sheet.err, HasSubstr("--quick: decodes nothing"));
}

// What is drawn is what the other commands take.
TEST(Draw, ShapesAndMasksAreTrainedOn) {
  const TempDir dir;
  const auto drawn = lockstep({"draw", "shapes", dir / "shapes", "--samples", "40", "--size", "48"});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_EQ(drawn.out, (dir / "shapes") + ": 44 images\n");
  ASSERT_EQ(lockstep({"draw", "masks", dir / "cells", "--samples", "12", "--size", "48"}).exit_code, 0);
  for (const char* data : {"shapes", "cells"}) {
    const auto looked = lockstep({"data", dir / data});
    EXPECT_EQ(looked.exit_code, 0) << looked.out << looked.err;
  }
  const auto classes = lockstep({"train", "imagenet", "--arch", "mobilenet_v2", "--data", dir / "shapes", "--size",
                                 "48", "--steps", "1", "--batch-size", "4", "--out", dir / "a"});
  EXPECT_EQ(classes.exit_code, 0) << classes.err;
  EXPECT_NE(classes.out.find("40 JPEGs of 10 classes"), std::string::npos) << classes.out;
  const auto masks = lockstep({"train", "unet", "--data", dir / "cells", "--size", "48", "--width", "4", "--steps", "1",
                               "--batch-size", "2", "--out", dir / "b"});
  EXPECT_EQ(masks.exit_code, 0) << masks.err;
  EXPECT_NE(masks.out.find("0 -> class 0, 1 -> class 1, 2 -> class 2, 3 -> class 3"), std::string::npos) << masks.out;
  const auto again = lockstep({"draw", "masks", dir / "cells"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_NE(again.err.find("cells is there; name a folder that is not"), std::string::npos) << again.err;
}

}  // namespace
}  // namespace lockstep::e2e
