#include "lockstep/checkpoint/formats/zip_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/files/zip_writer.h"
#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::string_literals;
using namespace testing_support;
using testing::HasSubstr;

std::string archive() {
  StringSink sink;
  ZipWriter zip(sink);
  zip.add("a/data.pkl", "content");
  zip.add("a/data/0", "more content");
  zip.finish();
  return sink.content;
}

class ZipCheck : public testing::Test {
 protected:
  std::string check(const std::string& content, uint64_t budget_bytes = 1 << 20) {
    write_file(path_, content);
    MemoryBudget budget(budget_bytes);
    const std::string line = error_of<DataError>([&] { check_zip_directory(path_, open_input(path_), budget); });
    charged_ = budget_bytes - budget.left();
    return line;
  }
  TempDir dir_;
  std::string path_ = dir_ / "a.pt";
  uint64_t charged_ = 0;
};

// The place of the n-th entry's record in the directory.
size_t entry_at(const std::string& content, int n) {
  size_t place = content.find("PK\1\2");
  while (n-- > 0) place = content.find("PK\1\2", place + 1);
  return place;
}

TEST_F(ZipCheck, ASoundDirectoryIsCharged) {
  EXPECT_EQ(check(archive()), "no error");
  EXPECT_GT(charged_, 1000u);
  EXPECT_THAT(check(archive(), 1000),
              HasSubstr("a.pt: a zip archive whose directory of 2 entries would take more than"));
  EXPECT_EQ(check(archive() + "comment"), "no error");
}

TEST_F(ZipCheck, WhatIsNoDirectoryIsLeftToLibzip) {
  for (const std::string& content : {"PK\3\4"s, "PK\5\6"s, std::string(100'000, 'x'), archive().substr(0, 100)}) {
    EXPECT_EQ(check(content), "no error");
  }
}

TEST_F(ZipCheck, EntriesAreSuchAsACheckpoints) {
  const std::string sound = archive();
  const size_t first = entry_at(sound, 0), second = entry_at(sound, 1);
  std::string content = sound;
  content.replace(second + 42, 4, sound, first + 42, 4);  // the offset of the header
  EXPECT_THAT(check(content), HasSubstr("its entries a/data.pkl and a/data/0 overlap"));
  content = sound;
  content[first + 8] |= 1;
  EXPECT_THAT(check(content), HasSubstr("its entry a/data.pkl is encrypted"));
  content = sound;
  content[second + 46 + 3] = '\0';
  EXPECT_THAT(check(content), HasSubstr("its entry a/d?ta/0 has a name with a NUL in it"));
  content = sound;
  content.replace(second + 4, 2, "\x14\x03");
  content.replace(second + 40, 2, "\xff\xa1");
  EXPECT_THAT(check(content), HasSubstr("its entry a/data/0 is a symbolic link"));
}

// Records that each would be read, one after the other.
TEST_F(ZipCheck, OneDirectoryEndsTheFile) {
  const std::string sound = archive(), end = sound.substr(sound.rfind("PK\5\6"));
  EXPECT_EQ(check(sound + end), "no error") << "the first one does not say that something comes after it";
  std::string two = sound + end;
  two[sound.size() - 2] = static_cast<char>(end.size());  // as its comment
  EXPECT_THAT(check(two), HasSubstr("a.pt: a zip archive that ends with 2 directories, of which it has one"));
  std::string many = sound;
  for (int i = 0; i < 5; ++i) many += end;
  EXPECT_THAT(check(many), HasSubstr("ends with 6 directories"));
}

// A directory that says of itself what the file has no room for.
TEST_F(ZipCheck, ADirectoryIsNotChargedForMoreThanTheFileHolds) {
  std::string content = archive();
  content.replace(content.size() - 12, 2, "\xfe\xff");
  EXPECT_EQ(check(content), "no error");
  EXPECT_LT(charged_, 10'000u);
}

}  // namespace
}  // namespace lockstep::checkpoint
