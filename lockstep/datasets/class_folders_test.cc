#include "lockstep/datasets/class_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/datasets/testing/picture_files.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using testing::data_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::write_deep;

TEST(ClassFolders, AreTheClassesBytewise) {
  const TempDir dir;
  for (const char* name : {"cats/2.jpg", "cats/1.png", "cats-2/1.jpg", "Dogs/deep/1.JPEG"}) write_deep(dir, name, name);
  const auto images = class_folders(dir.path());
  EXPECT_THAT(images->class_names(), ElementsAre("Dogs", "cats", "cats-2"));
  ASSERT_EQ(images->size(), 4);
  std::vector<uint8_t> memory;
  for (int64_t i = 0; i < images->size(); ++i) {
    const auto bytes = images->read(i, memory).bytes;
    const std::string name(bytes.begin(), bytes.end());
    EXPECT_EQ(images->name_of(i), dir / name);
    EXPECT_EQ(images->class_names()[static_cast<size_t>(images->class_of(i))], name.substr(0, name.find('/')));
  }
  EXPECT_THAT(images->text(), HasSubstr("4 images (3 JPEG, 1 PNG) of 3 classes in " + dir.path()));
}

TEST(ClassFolders, LeaveOtherFilesOutAndSaySo) {
  const TempDir dir;
  for (const char* name : {"cats/1.jpg", "cats/notes.txt", "README"}) write_deep(dir, name, name);
  const auto images = class_folders(dir.path());
  EXPECT_EQ(images->size(), 1);
  EXPECT_THAT(images->text(), HasSubstr("(2 other files left out)"));
  std::filesystem::remove(dir / "README");
  EXPECT_THAT(class_folders(dir.path())->text(), HasSubstr("(1 other file left out)"));
}

TEST(ClassFolders, RefuseAClassWithoutImages) {
  const TempDir dir;
  write_deep(dir, "cats/1.jpg", "x");
  std::filesystem::create_directory(dir / "dogs");
  EXPECT_THAT(data_error([&] { class_folders(dir.path()); }), HasSubstr(dir / "dogs: a class folder without images"));
  write_deep(dir, "dogs/1.webp", "x");
  EXPECT_THAT(data_error([&] { class_folders(dir.path()); }), HasSubstr(dir / "dogs: a class folder without images"));
  write_deep(dir, "dogs/1.png", "x");
  EXPECT_EQ(class_folders(dir.path())->size(), 2);
}

TEST(ClassFolders, RefuseImagesBesideThem) {
  const TempDir dir;
  for (const char* name : {"cats/1.jpg", "stray.jpg"}) write_deep(dir, name, name);
  EXPECT_THAT(data_error([&] { class_folders(dir.path()); }), HasSubstr(dir / "stray.jpg: an image beside"));
  const TempDir empty;
  empty.write("notes.txt", "");
  EXPECT_THAT(data_error([&] { class_folders(empty.path()); }), HasSubstr(": no class folders with images"));
}

TEST(ClassFolders, NameImagesWithoutAnyFolderOnOneLine) {
  const TempDir dir;
  for (const char* name : {"1.jpg", "2.jpg", "notes.txt"}) dir.write(name, "");
  const auto unexpected = [](const std::string& line) { ADD_FAILURE() << line; };
  for (const OnProblem& on_problem : {OnProblem(), OnProblem(unexpected)}) {
    EXPECT_THAT(data_error([&] { class_folders(dir.path(), {.on_problem = on_problem}); }),
                HasSubstr("in it; move its 2 images into a folder for each class"));
  }
}

TEST(ClassFolders, OfAnotherPartHaveTheTrainingPartsNumbers) {
  const TempDir dir;
  for (const char* name : {"val/cats/1.jpg", "val/eels/1.jpg"}) write_deep(dir, name, name);
  const auto images = class_folders(dir / "val", {.classes = {"bats", "cats", "dogs", "eels"}});
  EXPECT_EQ(images->class_of(0), 1);
  EXPECT_EQ(images->class_of(1), 3);
  EXPECT_EQ(images->class_names().size(), 4u);
  EXPECT_THAT(data_error([&] {
                class_folders(dir / "val", {.classes = {"cats", "dogs"}});
              }),
              AllOf(HasSubstr("val/eels: a class that the training part doesn't have")));
}

TEST(ClassFolders, HaveAFingerprintThatNoPathIsPartOf) {
  const TempDir dir, other;
  for (const TempDir* each : {&dir, &other}) write_deep(*each, "cats/1.jpg", "123");
  EXPECT_EQ(class_folders(dir.path())->fingerprint(), class_folders(other.path())->fingerprint());
  write_deep(other, "cats/2.jpg", "123");
  EXPECT_NE(class_folders(dir.path())->fingerprint(), class_folders(other.path())->fingerprint());
  EXPECT_THAT(class_folders(other.path())->listing(), ElementsAre(Listed{"cats/1.jpg", 3}, Listed{"cats/2.jpg", 3}));
}

// Names of any kind work, and come as one line in errors.
TEST(ClassFolders, MayHaveAnyName) {
  const TempDir dir;
  write_deep(dir, "two\nlines/gr\xc3\xbc\xc3\x9f e.jpg", "123");
  const auto images = class_folders(dir.path());
  EXPECT_EQ(images->name_of(0), dir / "two\\nlines/gr\xc3\xbc\xc3\x9f e.jpg");
  std::vector<uint8_t> memory;
  EXPECT_EQ(images->read(0, memory).bytes.size(), 3u);
}

TEST(ClassFolders, NameAFileThatIsGone) {
  const TempDir dir;
  write_deep(dir, "cats/1.jpg", "123");
  const auto images = class_folders(dir.path());
  std::filesystem::remove(dir / "cats/1.jpg");
  std::vector<uint8_t> memory;
  EXPECT_THAT(data_error([&] { images->read(0, memory); }), HasSubstr("cats/1.jpg: can't be read: No such file"));
  EXPECT_THROW(images->read(1, memory), BugError);
}

TEST(ClassFolders, AreListedOnOneRank) {
  const TempDir dir;
  const data::OnOneRank elsewhere = [](const std::function<std::string()>&) { return text_of({{"cats/7.jpg", 1}}); };
  EXPECT_EQ(class_folders(dir.path(), {.on_one_rank = elsewhere})->name_of(0), dir / "cats/7.jpg");
}

}  // namespace
}  // namespace lockstep::datasets
