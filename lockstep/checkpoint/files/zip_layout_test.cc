#include "lockstep/checkpoint/files/zip_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/files/byte_sink.h"
#include "lockstep/checkpoint/files/zip_writer.h"

namespace lockstep::checkpoint {
namespace {

using testing::HasSubstr;

const std::vector<std::pair<std::string, std::string>> kContents = {
    {"a/data/0", std::string(1000, 'w')}, {"a/data/1", ""}, {"a/data/2", std::string(64, 'x')}, {"a/version", "3\n"}};

std::string written() {
  StringSink sink;
  ZipWriter writer(sink);
  for (const auto& [name, content] : kContents) writer.add(name, content);
  writer.finish();
  return sink.content;
}

// Headers without checksums, and contents.
std::string image() {
  ZipLayout layout;
  for (const auto& [name, content] : kContents) layout.add(name, content.size());
  std::string bytes(layout.end(), '\0');
  for (size_t i = 0; i < kContents.size(); ++i) {
    const ZipEntry& entry = layout.entries()[i];
    const std::string header = local_header(entry);
    EXPECT_EQ(entry.header + header.size(), entry.content);
    bytes.replace(entry.header, header.size(), header);
    bytes.replace(entry.content, entry.bytes, kContents[i].second);
  }
  return bytes;
}

TEST(ZipLayout, ACompletedImageIsWhatTheWriterWrites) {
  std::string bytes = image();
  EXPECT_NE(bytes, written().substr(0, bytes.size())) << "it had checksums before";
  const std::string rest = complete_archive(bytes);
  EXPECT_EQ(bytes + rest, written());
  EXPECT_EQ(complete_archive(bytes), rest) << "once more";
}

TEST(ZipLayout, KnownSumsAreTaken) {
  std::string bytes = image();
  ZipLayout layout;
  for (const auto& [name, content] : kContents) layout.add(name, content.size());
  const ZipEntry& first = layout.entries()[0];
  complete_archive(bytes, {}, ByteSums({{first.content, first.bytes, 0x12345678}}));
  EXPECT_NE(bytes.find("\x78\x56\x34\x12", first.header), bytes.npos) << "not read again";
  std::string other = image();
  complete_archive(other, {}, ByteSums({{first.content, first.bytes + 1, 0x12345678}}));
  EXPECT_EQ(other, written().substr(0, other.size())) << "of other bytes";
}

TEST(ZipLayout, AnImageThatIsNotWholeIsRefused) {
  const std::string whole = image();
  for (size_t bytes = 1; bytes < whole.size(); ++bytes) {
    std::string cut = whole.substr(0, bytes);
    const ZipLayout first = [] {
      ZipLayout layout;
      for (const auto& [name, content] : kContents) layout.add(name, content.size());
      return layout;
    }();
    const bool ends_with_an_entry = std::any_of(first.entries().begin(), first.entries().end(),
                                                [&](const ZipEntry& e) { return e.content + e.bytes == bytes; });
    if (ends_with_an_entry) continue;
    EXPECT_THROW(complete_archive(cut), DataError) << bytes;
  }
}

TEST(ZipLayout, OtherBytesAreRefused) {
  std::string zeros(4096, '\0');
  EXPECT_THROW(complete_archive(zeros), DataError);
  std::string bytes = image();
  bytes[26] = static_cast<char>(bytes[26] + 1);  // the first name's length
  EXPECT_THROW(complete_archive(bytes), DataError);
}

TEST(ZipLayout, WhatNeeds64BitsIsAligned) {
  constexpr uint64_t kLarge = (uint64_t{5} << 30) + 1;
  ZipLayout layout;
  for (int i = 0; i < 3; ++i) layout.add("a/" + std::to_string(i), kLarge);
  for (const ZipEntry& entry : layout.entries()) {
    EXPECT_EQ(entry.content % ZipLayout::kAlignment, 0U);
    const std::string header = local_header(entry);
    EXPECT_EQ(header.size(), entry.content - entry.header);
    uint64_t held = 0;
    std::memcpy(&held, header.data() + 30 + entry.name.size() + 4, sizeof held);
    EXPECT_EQ(held, kLarge);
  }
  EXPECT_GT(layout.entries()[2].header, uint64_t{10} << 30);
  uint64_t start = 0;  // of the directory, in the zip64 record, which stands before its locator and the end
  const std::string directory = layout.directory();
  std::memcpy(&start, directory.data() + directory.size() - 22 - 20 - 8, sizeof start);
  EXPECT_EQ(start, layout.end());
}

}  // namespace
}  // namespace lockstep::checkpoint
