#include "lockstep/checkpoint/files/zip_writer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/testing/files.h"
#include "lockstep/checkpoint/formats/zip_archive.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;

TEST(ZipWriter, AlignsEveryContent) {
  StringSink sink;
  ZipWriter writer(sink);
  for (int i = 0; i < 70; ++i) writer.add(std::string(static_cast<size_t>(i + 1), 'n'), "<" + std::to_string(i) + ">");
  writer.finish();
  for (int i = 0; i < 70; ++i) {
    EXPECT_EQ(sink.content.find("<" + std::to_string(i) + ">") % ZipLayout::kAlignment, 0u) << i;
  }
}

TEST(ZipWriter, CountsMoreEntriesThan16BitsHold) {
  const TempDir dir;
  StringSink sink;
  ZipWriter writer(sink);
  constexpr size_t kCount = 66'000;
  for (size_t i = 0; i < kCount; ++i) writer.add("a/" + std::to_string(i), "");
  writer.finish();
  write_file(dir / "many.zip", sink.content);
  EXPECT_EQ(ZipArchive(dir / "many.zip").names().size(), kCount);
}

TEST(ZipWriter, RefusesNamesThatNoHeaderHolds) {
  StringSink sink;
  EXPECT_THROW(ZipWriter(sink).add(std::string(1u << 15, 'n'), ""), BugError);
}

// Makes a file with holes: what is large is skipped, not written.
class SparseSink : public ByteSink {
 public:
  explicit SparseSink(const std::string& path) : out_(path, std::ios::binary) {}
  void write(std::string_view bytes) override {
    if (bytes.size() < 1u << 20) {
      out_ << bytes;
    } else {
      out_.seekp(static_cast<std::streamoff>(bytes.size()), std::ios::cur);
    }
  }

 private:
  std::ofstream out_;
};

TEST(ZipWriter, HoldsMoreBytesThan32BitsCount) {
  const TempDir dir;
  constexpr size_t kBytes = (size_t{4} << 30) + 4096;
  void* zeros = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  {
    SparseSink sink(dir / "large.zip");
    ZipWriter writer(sink);
    writer.add("a/large", {static_cast<const char*>(zeros), kBytes});
    writer.add("a/behind", "content");
    writer.finish();
  }
  munmap(zeros, kBytes);
  ZipArchive archive(dir / "large.zip");
  EXPECT_EQ(archive.size("a/large"), kBytes);
  EXPECT_EQ(archive.read("a/behind", 10), "content");
}

}  // namespace
}  // namespace lockstep::checkpoint
