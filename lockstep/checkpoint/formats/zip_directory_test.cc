#include "lockstep/checkpoint/formats/zip_directory.h"

#include <gtest/gtest.h>
#include <zip.h>

#include <cstring>

#include "lockstep/checkpoint/files/byte_sink.h"
#include "lockstep/checkpoint/files/crc32.h"
#include "lockstep/checkpoint/files/zip_writer.h"
#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;

class ZipDirectoryTest : public testing::Test {
 protected:
  static std::string archive() {
    StringSink sink;
    ZipWriter writer(sink);
    writer.add("a/one", "the content");
    writer.add("a/two", std::string(1000, 'x'));
    writer.finish();
    return sink.content;
  }
  std::optional<ZipContent> find(const std::string& content, const std::string& name) {
    write_file(path_, content);
    const InputFile file = open_input(path_);
    return ZipDirectory(path_, file).find(name);
  }
  TempDir dir_;
  std::string path_ = dir_ / "a.zip";
};

TEST_F(ZipDirectoryTest, FindsContents) {
  const std::string content = archive();
  const auto one = find(content, "a/one"), two = find(content, "a/two");
  ASSERT_TRUE(one && two);
  EXPECT_EQ(content.substr(one->offset, one->bytes), "the content");
  EXPECT_EQ(content.substr(two->offset, two->bytes), std::string(1000, 'x'));
  EXPECT_EQ(one->checksum, crc32("the content"));
  EXPECT_FALSE(find(content, "a/three"));
}

// An archive of many entries, or beyond 4 GiB, has its numbers in another record (APPNOTE 4.3.14), and an entry beyond
// 4 GiB in a field of its own (4.5.3).
TEST_F(ZipDirectoryTest, ReadsTheNumbersOf64Bits) {
  const std::string content = archive();
  const auto text = [](auto number) { return std::string(reinterpret_cast<const char*>(&number), sizeof number); };
  const size_t end = content.size() - 22;
  uint32_t bytes = 0, offset = 0;
  std::memcpy(&bytes, content.data() + end + 12, 4);
  std::memcpy(&offset, content.data() + end + 16, 4);
  const std::string end64 = text(0x06064b50U) + text(uint64_t{44}) + std::string(12, '\0') + text(uint64_t{2}) +
                            text(uint64_t{2}) + text(uint64_t{bytes}) + text(uint64_t{offset});
  const std::string locator = text(0x07064b50U) + text(0U) + text(uint64_t{end}) + text(1U);
  std::string tail = content.substr(end);
  tail.replace(8, 12, 12, '\xff');  // counts, bytes and offset
  const std::string large = content.substr(0, end) + end64 + locator + tail;
  const auto found = find(large, "a/one");
  ASSERT_TRUE(found);
  EXPECT_EQ(large.substr(found->offset, found->bytes), "the content");
  EXPECT_FALSE(find(content.substr(0, end) + locator + tail, "a/one")) << "the record is missing";

  // The first entry's sizes in its field.
  const size_t entry = offset, name = 5;
  std::string wide = content.substr(0, end);
  const std::string field = text(uint16_t{1}) + text(uint16_t{16}) + text(uint64_t{11}) + text(uint64_t{11});
  const std::string other = text(uint16_t{0x5455}) + text(uint16_t{2}) + "xy";
  wide.replace(entry + 20, 8, 8, '\xff');
  wide.replace(entry + 30, 2, text(static_cast<uint16_t>(field.size() + other.size())));
  uint16_t before = 0;
  std::memcpy(&before, content.data() + entry + 30, 2);
  wide.replace(entry + 46 + name, before, other + field);
  std::string after = content.substr(end);
  after.replace(12, 4, text(static_cast<uint32_t>(bytes + field.size() + other.size() - before)));
  const auto in_field = find(wide + after, "a/one");
  ASSERT_TRUE(in_field);
  EXPECT_EQ(in_field->bytes, 11U);
  EXPECT_EQ(in_field->offset, found->offset);
}

TEST_F(ZipDirectoryTest, LeavesCompressedEntriesToLibzip) {
  const std::string content(100'000, 'x');
  zip_t* zip = zip_open(path_.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  zip_file_add(zip, "packed", zip_source_buffer(zip, content.data(), content.size(), 0), 0);
  const auto stored = zip_file_add(zip, "stored", zip_source_buffer(zip, "abc", 3, 0), 0);
  zip_set_file_compression(zip, static_cast<zip_uint64_t>(stored), ZIP_CM_STORE, 0);
  ASSERT_EQ(zip_close(zip), 0);
  const std::string file = read_file(path_);
  EXPECT_FALSE(find(file, "packed"));
  const auto found = find(file, "stored");
  ASSERT_TRUE(found);
  EXPECT_EQ(file.substr(found->offset, found->bytes), "abc");
}

TEST_F(ZipDirectoryTest, GivesNoPlaceOutsideTheFile) {
  const std::string content = archive();
  for (size_t length = 1; length < content.size(); length += 3) EXPECT_FALSE(find(content.substr(0, length), "a/one"));
  for (size_t i = 0; i < content.size(); ++i) {
    for (const int bit : {1, 64, 128}) {
      std::string damaged = content;
      damaged[i] = static_cast<char>(damaged[i] ^ bit);
      const auto found = find(damaged, "a/one");
      if (found) EXPECT_LE(found->offset + found->bytes, content.size());
    }
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
