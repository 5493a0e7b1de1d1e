// What each of the bad folders does: all of it is read, or it is refused on one line that names it, within bounds of
// memory.
#include "lockstep/datasets/testing/bad_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "lockstep/base/shown.h"
#include "lockstep/base/testing/peak_memory.h"
#include "lockstep/data/read_batch.h"
#include "lockstep/datasets/digits/testing/mnist_files.h"
#include "lockstep/datasets/mnist.h"
#include "lockstep/datasets/open_images.h"
#include "lockstep/datasets/open_pairs.h"

namespace lockstep::datasets {
namespace {

using testing::BadFolder;
using testing::BadFolders;
using ::testing::HasSubstr;
using testing::TempDir;
using testing_support::kMeasuresMemory;
using testing_support::PeakMemory;

using Opener = std::function<data::Splits(const std::string& path)>;

data::Splits images(const std::string& path) { return open_images({.path = path, .size = 16}); }
data::Splits pairs(const std::string& path) { return open_pairs({.path = path, .size = 16, .threads = 2}); }

// Opens what lies there, and reads each sample. The line of the refusal; empty if there is none.
std::string refusal_of(const Opener& open, const std::string& path) {
  try {
    const data::Splits splits = open(path);
    for (const auto& part : {splits.train, splits.test}) {
      if (part == nullptr) continue;
      for (int64_t i = 0; i < part->size(); ++i) data::read_batch(*part, std::vector<int64_t>{i});
      EXPECT_EQ(part->description(), shown(part->description()));
    }
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

// Makes this process one that may not read everything, as root may.
class WithoutRoot {
 public:
  WithoutRoot() : was_root_(geteuid() == 0 && seteuid(kNobody) == 0) {}
  WithoutRoot(const WithoutRoot&) = delete;
  ~WithoutRoot() {
    if (was_root_ && seteuid(0) != 0) ADD_FAILURE() << "root is gone";
  }

 private:
  static constexpr uid_t kNobody = 65534;
  bool was_root_;
};

std::string refusal_without_root(const Opener& open, const TempDir& dir) {
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  const WithoutRoot nobody;
  return refusal_of(open, dir.path());
}

void check(const BadFolders& folders, const Opener& open) {
  for (const BadFolder& each : folders) {
    SCOPED_TRACE(each.name);
    const TempDir dir;
    each.make(dir);
    const std::string line = each.unreadable ? refusal_without_root(open, dir) : refusal_of(open, dir.path());
    if (each.unreadable) std::filesystem::permissions(dir / "cats", std::filesystem::perms::owner_all);
    EXPECT_EQ(line.empty(), each.why.empty()) << line;
    EXPECT_THAT(line, HasSubstr(each.why));
    if (line.empty()) continue;
    EXPECT_THAT(line, HasSubstr(dir.path()));
    EXPECT_EQ(line, shown(line)) << "control characters";
    EXPECT_LT(line.size(), 600u) << line;
  }
}

TEST(BadFolders, OfClassesAreReadOrRefusedOnALine) { check(testing::odd_class_folders(), images); }
TEST(BadFolders, OfPairsAreReadOrRefusedOnALine) { check(testing::odd_pairs(), pairs); }
TEST(BadFolders, OfRecordsAreReadOrRefusedOnALine) { check(testing::odd_files_of_records(), images); }
TEST(BadFolders, OfPackedDataAreReadOrRefusedOnALine) { check(testing::odd_packed_data(), images); }

// Half of what a file held when the folder was opened, or nothing, may be there when its turn comes.
TEST(BadFolders, WhatGoesAfterTheyWereOpenedIsNamed) {
  const TempDir dir;
  testing::write_classes(dir, "", {"cats", "dogs"}, 2);
  const data::Splits splits = images(dir.path());
  const auto line = [&](int64_t i) {
    return testing::data_error([&] { data::read_batch(*splits.train, std::vector<int64_t>{i}); });
  };
  testing::cut(dir / "cats/0.jpg", 200);
  std::filesystem::remove(dir / "cats/1.jpg");
  std::filesystem::remove(dir / "dogs/0.jpg");
  std::filesystem::create_directory(dir / "dogs/0.jpg");
  EXPECT_THAT(line(0), HasSubstr("cats/0.jpg: a damaged JPEG"));
  EXPECT_THAT(line(1), HasSubstr("cats/1.jpg: can't be read: No such file"));
  EXPECT_THAT(line(2), HasSubstr("dogs/0.jpg: is a directory"));
}

// `members` gzip members of 16 MiB of `byte` behind `head`: 16 KiB each.
std::string bomb(const std::string& head, char byte, int members) {
  std::string packed = testing::gzip(head);
  const std::string member = testing::gzip(std::string(16 << 20, byte), 9);
  for (int i = 0; i < members; ++i) packed += member;
  return packed;
}

// 64 GiB in 64 MB of gzip data, and how much of it is believed.
TEST(BadFolders, BombsOfGzipAreRefusedBeforeTheyTakeMemory) {
  if (!kMeasuresMemory) GTEST_SKIP() << "sanitizers keep what is freed";
  const auto refused = [](const std::string& file, const std::string& content, const char* why, int64_t most_mib) {
    SCOPED_TRACE(file);
    const TempDir dir;
    if (file.ends_with("ubyte.gz")) testing::write_mnist(dir, ".gz");
    dir.write(file, content);
    const PeakMemory peak;
    const std::string line = refusal_of(open_mnist, dir.path());
    EXPECT_THAT(line, HasSubstr(why));
    EXPECT_LT(peak.growth_mib(), most_mib);
  };
  const std::string images = "train-images-idx3-ubyte.gz", labels = "train-labels-idx1-ubyte.gz",
                    json = "mnist.json.gz";
  refused(images, bomb(std::string(64, '\0'), '\0', 1000), "not an idx file", 100);
  refused(images, bomb(testing::idx_images(12), '\0', 1000), "byte 9424 of what it unpacks to: data goes on", 100);
  refused(images, bomb(testing::idx_header(2051, {4'000'000'000, 28, 28}), '\0', 1000), "more than the 2 GiB", 100);
  refused(labels, bomb(testing::idx_labels(12), '\0', 1000), "byte 20 of what it unpacks to: data goes on", 100);
  refused(json, bomb(std::string(64, '\0'), '\0', 1000), "it does not begin with '['", 100);
  refused(json, bomb("{", ' ', 1000), "it does not begin with '['", 100);
}

}  // namespace
}  // namespace lockstep::datasets
