#include "lockstep/checkpoint/formats/pickle_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/peak_memory.h"
#include "lockstep/checkpoint/formats/pickle_reader.h"
#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;

class PickleInAFile : public testing::Test {
 protected:
  PickleInAFile() {
    for (size_t i = 0; i < 300'000; ++i) content_ += static_cast<char>(i * 7 % 251);
    write_file(path_, content_);
  }
  std::shared_ptr<const StoredFile> file() { return std::make_shared<StoredFile>(path_, open_input(path_)); }
  TempDir dir_;
  std::string path_ = dir_ / "file", content_;
};

TEST_F(PickleInAFile, HasTheFilesBytes) {
  const PickleBytes bytes(file(), content_.size());
  ASSERT_EQ(bytes.size(), content_.size());
  for (const auto& [offset, length] : std::vector<std::pair<size_t, size_t>>{
           {100'000, 1}, {99'000, 3'000}, {0, 0}, {299'999, 1}, {0, 40'000}, {16'384, 16'384}, {0, 300'000}}) {
    EXPECT_TRUE(bytes.at(offset, length) == std::string_view(content_).substr(offset, length)) << offset;
  }
}

TEST_F(PickleInAFile, LeavesManyBytesThere) {
  const PickleBytes bytes(file(), content_.size());
  EXPECT_FALSE(bytes.left_in_file(0, 1'000).has_value());
  const auto storage = bytes.left_in_file(50'000, 200'000);
  ASSERT_TRUE(storage.has_value());
  EXPECT_EQ(stored_bytes(*storage)->offset, 50'000);
  EXPECT_EQ(storage->nbytes(), 200'000);
  EXPECT_FALSE(PickleBytes(content_).left_in_file(50'000, 200'000).has_value());
}

TEST_F(PickleInAFile, LinesAreFoundAcrossBlocks) {
  content_ = std::string(40'000, 'a') + "\nrest";
  write_file(path_, content_);
  const PickleBytes bytes(file(), content_.size());
  PickleCursor cursor(bytes);
  EXPECT_EQ(cursor.line().size(), 40'000);
  EXPECT_EQ(cursor.take(4), "rest");
  EXPECT_THROW(cursor.take(1), Fault);
  PickleCursor last(bytes);
  last.skip(40'001);
  EXPECT_THROW(last.line(), Fault);
}

// What is no array is read, however long it is.
TEST_F(PickleInAFile, OtherBytesAreRead) {
  const std::string pickle =
      "\x80\x04"
      "B" +
      std::string("\xe0\x93\x04\x00", 4) + content_ + ".";
  write_file(path_, pickle);
  const PickleResult read = read_pickle(PickleBytes(file(), pickle.size()), {.name = "a"});
  EXPECT_EQ(read.bytes_read, pickle.size());
  EXPECT_TRUE(read.value.get_if<Bytes>()->data == content_);
}

}  // namespace
}  // namespace lockstep::checkpoint
