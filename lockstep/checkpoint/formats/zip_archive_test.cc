#include "lockstep/checkpoint/formats/zip_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>

#include "lockstep/checkpoint/files/byte_sink.h"
#include "lockstep/checkpoint/files/zip_writer.h"
#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;
using testing::HasSubstr;

class ZipArchiveTest : public testing::Test {
 protected:
  void write(const std::vector<std::pair<std::string, std::string>>& entries) {
    StringSink sink;
    ZipWriter writer(sink);
    for (const auto& [name, content] : entries) writer.add(name, content);
    writer.finish();
    write_file(path_, sink.content);
  }
  // With libzip, which can compress.
  void write_compressed(const std::string& name, const std::string& content) {
    zip_t* zip = zip_open(path_.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
    const auto index = zip_file_add(zip, name.c_str(), zip_source_buffer(zip, content.data(), content.size(), 0), 0);
    zip_set_file_compression(zip, static_cast<zip_uint64_t>(index), ZIP_CM_DEFLATE, 1);
    ASSERT_EQ(zip_close(zip), 0);
  }
  std::string open_refusal() {
    return error_of<DataError>([&] { ZipArchive archive(path_); });
  }

  TempDir dir_;
  std::string path_ = dir_ / "a.zip";
};

TEST_F(ZipArchiveTest, ReadsEntries) {
  write({{"a/one", "1"}, {"a/none", ""}});
  ZipArchive archive(path_);
  EXPECT_EQ(archive.names(), (std::vector<std::string>{"a/one", "a/none"}));
  EXPECT_EQ(archive.read("a/one", 10), "1");
  EXPECT_EQ(archive.read("a/none", 10), "");
  EXPECT_TRUE(archive.contains("a/one"));
  EXPECT_FALSE(archive.contains("one"));
  EXPECT_THAT(error_of<DataError>([&] { archive.read("a/two", 9); }), HasSubstr("its entry a/two is missing"));
  EXPECT_THAT(error_of<DataError>([&] { archive.read("a/one", 0); }), HasSubstr("is of 1 byte, more than the 0 bytes"));
  char byte;
  EXPECT_THAT(error_of<DataError>([&] { archive.read_into("a/one", &byte, 2); }), HasSubstr("holds 1 bytes where 2"));
}

TEST_F(ZipArchiveTest, ChecksTheChecksum) {
  write({{"a/one", "the content"}});
  std::string damaged = read_file(path_);
  damaged[damaged.find("the content")] = 'T';
  write_file(path_, damaged);
  ZipArchive archive(path_);
  EXPECT_THAT(error_of<DataError>([&] { archive.read("a/one", 100); }), HasSubstr("a/one: damaged (CRC error)"));
}

TEST_F(ZipArchiveTest, ChecksEntriesThatNobodyReads) {
  write({{"a/one", std::string(3u << 20, 'x') + "the end"}, {"a/none", ""}});
  ZipArchive(path_).check("a/one");
  ZipArchive(path_).check("a/none");
  std::string damaged = read_file(path_);
  damaged[damaged.find("the end")] = 'T';
  write_file(path_, damaged);
  EXPECT_THAT(error_of<DataError>([&] { ZipArchive(path_).check("a/one"); }), HasSubstr("a/one: damaged (CRC error)"));
}

TEST_F(ZipArchiveTest, ComparesHeadersWhereAsked) {
  using Headers = ZipArchive::Headers;
  write({{"a/one", "1"}, {"a/two", "2"}});
  const ZipArchive whole(path_, Headers::kCompared);
  constexpr size_t kToChecksum = 14;  // of the first entry's own header
  std::string damaged = read_file(path_);
  damaged[kToChecksum] ^= 1;
  write_file(path_, damaged);
  EXPECT_EQ(error_of<DataError>([&] { ZipArchive archive(path_, Headers::kOfDirectory); }), "no error");
  EXPECT_THAT(error_of<DataError>([&] { ZipArchive archive(path_, Headers::kCompared); }),
              HasSubstr("cut short or damaged"));
}

TEST_F(ZipArchiveTest, RefusesNamesThatLeadOut) {
  for (const char* name : {"a/../../x", "../x", "/etc/x", "a\\..\\x"}) {
    write({{"a/one", "1"}, {name, "2"}});
    EXPECT_THAT(open_refusal(), HasSubstr("leads out of the archive")) << name;
  }
  write({{"a/..b/x", "harmless"}});
  EXPECT_EQ(open_refusal(), "no error");
}

TEST_F(ZipArchiveTest, RefusesTheSameNameTwice) {
  write({{"a/one", "1"}, {"a/one", "2"}});
  EXPECT_THAT(open_refusal(), HasSubstr("holds the entry a/one twice"));
}

TEST_F(ZipArchiveTest, RefusesWhatIsNoArchive) {
  write({{"a/one", "1"}});
  const std::string content = read_file(path_);
  write_file(path_, content.substr(0, content.size() - 10));
  EXPECT_THAT(open_refusal(), HasSubstr("cut short or damaged"));
}

TEST_F(ZipArchiveTest, UnpacksALittleButNoBomb) {
  write_compressed("a/small", std::string(100'000, 'x'));
  EXPECT_EQ(ZipArchive(path_).read("a/small", 1u << 20), std::string(100'000, 'x'));
  write_compressed("a/bomb", std::string(65u << 20, '\0'));
  ZipArchive archive(path_);
  EXPECT_THAT(error_of<DataError>([&] { archive.read("a/bomb", 1u << 30); }),
              HasSubstr("is compressed and would unpack to 65 MiB"));
}

}  // namespace
}  // namespace lockstep::checkpoint
