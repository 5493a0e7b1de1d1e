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

}  // namespace
}  // namespace lockstep::e2e
