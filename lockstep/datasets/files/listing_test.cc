#include "lockstep/datasets/files/listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "lockstep/datasets/files/testing/files.h"

namespace lockstep::datasets {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::data_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;

std::vector<std::string> names(const Listing& listing) {
  std::vector<std::string> names;
  for (const Listed& file : listing) names.push_back(file.name);
  return names;
}

TEST(Listing, HasAllFilesBytewiseWithTheirSizes) {
  const TempDir dir;
  for (const char* folder : {"b", "a", "a/deep", "B"}) fs::create_directory(dir / folder);
  dir.write("b/2.jpg", "12345");
  dir.write("a/deep/1.jpg", "1");
  dir.write("a-1.jpg", "");
  dir.write("B/1.jpg", "12");
  EXPECT_THAT(list_files(dir.path()),
              ElementsAre(Listed{"B/1.jpg", 2}, Listed{"a-1.jpg", 0}, Listed{"a/deep/1.jpg", 1}, Listed{"b/2.jpg", 5}));
  EXPECT_THAT(list_folders(dir.path()), ElementsAre("B", "a", "b"));
}

TEST(Listing, LeavesHiddenNamesOut) {
  const TempDir dir;
  fs::create_directory(dir / ".git");
  dir.write(".git/1.jpg", "1");
  dir.write("._1.jpg", "1");
  dir.write("1.jpg", "1");
  EXPECT_THAT(names(list_files(dir.path())), ElementsAre("1.jpg"));
  EXPECT_TRUE(list_folders(dir.path()).empty());
}

TEST(Listing, FollowsLinks) {
  const TempDir dir, elsewhere;
  elsewhere.write("1.jpg", "123");
  fs::create_symlink(elsewhere.path(), dir / "cats");
  fs::create_symlink(elsewhere / "1.jpg", dir / "one.jpg");
  EXPECT_THAT(list_files(dir.path()), ElementsAre(Listed{"cats/1.jpg", 3}, Listed{"one.jpg", 3}));
  EXPECT_THAT(list_folders(dir.path()), ElementsAre("cats"));
}

TEST(Listing, MayMeetAFolderTwiceThatIsNotAboveItself) {
  const TempDir dir;
  fs::create_directory(dir / "cats");
  dir.write("cats/1.jpg", "1");
  fs::create_symlink(dir / "cats", dir / "felines");
  EXPECT_THAT(names(list_files(dir.path())), ElementsAre("cats/1.jpg", "felines/1.jpg"));
}

TEST(Listing, RefusesLoops) {
  const TempDir dir;
  fs::create_directory(dir / "cats");
  fs::create_symlink(dir.path(), dir / "cats/all");
  EXPECT_THAT(data_error([&] { list_files(dir.path()); }), AllOf(HasSubstr("cats/all: leads back"), HasSubstr("link")));
  const TempDir other;
  fs::create_symlink(other / "self", other / "self");
  EXPECT_THAT(data_error([&] { list_files(other.path()); }), HasSubstr("self: can't be looked at: Too many levels"));
}

TEST(Listing, RefusesLinksToNothing) {
  const TempDir dir;
  fs::create_symlink(dir / "gone", dir / "1.jpg");
  EXPECT_THAT(data_error([&] { list_files(dir.path()); }), HasSubstr("1.jpg: can't be looked at: No such file"));
}

TEST(Listing, RefusesPipes) {
  const TempDir dir;
  ASSERT_EQ(mkfifo((dir / "1.jpg").c_str(), 0600), 0);
  EXPECT_THAT(data_error([&] { list_files(dir.path()); }), HasSubstr("1.jpg: is a device, pipe"));
}

TEST(Listing, RefusesFoldersThatCantBeRead) {
  const TempDir dir;
  EXPECT_THAT(data_error([&] { list_files(dir / "none"); }), HasSubstr("none: the folder can't be read: No such file"));
  EXPECT_THAT(data_error([&] { list_files(dir.write("file", "")); }), HasSubstr("Not a directory"));
  if (geteuid() == 0) GTEST_SKIP() << "root may read every folder";
  fs::create_directory(dir / "closed");
  ASSERT_EQ(chmod((dir / "closed").c_str(), 0), 0);
  EXPECT_THAT(data_error([&] { list_files(dir.path()); }), HasSubstr("closed: the folder can't be read: Permission"));
}

TEST(Listing, RefusesWhatLiesTooDeep) {
  const TempDir dir;
  std::string path = ".";
  for (int i = 0; i < 3; ++i) fs::create_directory(dir / (path += "/d"));
  EXPECT_TRUE(list_files(dir.path(), 3).empty());
  EXPECT_THAT(data_error([&] { list_files(dir.path(), 2); }), HasSubstr("d/d/d: lies deeper than 2 folders"));
}

// Every name that a file can have comes through a text unharmed.
TEST(Listing, CarriesAnyName) {
  const TempDir dir;
  for (const char* name : {"two\nlines.jpg", "3 spaces.jpg", "gr\xc3\xbc\xc3\x9f.jpg", "\xff\xfe.jpg", "12 34"}) {
    dir.write(name, name);
  }
  const Listing listing = list_files(dir.path());
  EXPECT_EQ(listing.size(), 5u);
  EXPECT_EQ(listing_of(text_of(listing)), listing);
  EXPECT_EQ(listing_of(""), Listing());
  for (const char* damaged : {"12", "x name", "12x name"}) {
    EXPECT_THROW(listing_of(std::string_view(damaged, std::strlen(damaged) + 1)), DataError) << damaged;
  }
  EXPECT_THROW(listing_of("12 name"), DataError) << "its end is missing";
}

TEST(Listing, HasAFingerprintOfNamesAndSizes) {
  const Listing listing = {{"a", 1}, {"b", 2}};
  EXPECT_THAT(fingerprint_of(listing), HasSubstr("files 2 xxh3 "));
  EXPECT_EQ(fingerprint_of(listing), fingerprint_of({{"a", 1}, {"b", 2}}));
  for (const Listing& other : {Listing{{"a", 1}, {"b", 3}}, Listing{{"a", 1}, {"c", 2}}, Listing{{"a", 1}}}) {
    EXPECT_NE(fingerprint_of(listing), fingerprint_of(other));
  }
}

TEST(Listing, KnowsEndingsInCapitalAndSmallLetters) {
  EXPECT_TRUE(has_ending("a/b.JPEG", {"jpg", "jpeg"}));
  EXPECT_TRUE(has_ending("b.x.jpg", {"jpg", "jpeg"}));
  EXPECT_FALSE(has_ending("jpg", {"jpg"}));
  EXPECT_FALSE(has_ending("a.jpg/b", {"jpg"}));
  EXPECT_FALSE(has_ending("a.jpgx", {"jpg"}));
}

TEST(Listing, TellsProblemsAndListsTheRest) {
  const TempDir dir;
  std::filesystem::create_directories(dir / "cats/deep");
  dir.write("cats/1.jpg", "one");
  std::filesystem::create_symlink("nowhere", dir / "cats/0.jpg");
  std::filesystem::create_directory_symlink("..", dir / "cats/deep/back");
  ASSERT_EQ(mkfifo((dir / "pipe.jpg").c_str(), 0600), 0);
  std::vector<std::string> problems;
  const auto on_problem = [&](const std::string& line) { problems.push_back(line); };
  EXPECT_THAT(names(list_files(dir.path(), 8, on_problem)), ElementsAre("cats/1.jpg"));
  EXPECT_THAT(problems,
              ::testing::UnorderedElementsAre(HasSubstr("cats/0.jpg: can't be looked at"),
                                              HasSubstr("back: leads back"), HasSubstr("pipe.jpg: is a device")));
  EXPECT_THAT(data_error([&] { list_files(dir / "none", 8, on_problem); }), HasSubstr("can't be read")) << "all of it";
}

}  // namespace
}  // namespace lockstep::datasets
