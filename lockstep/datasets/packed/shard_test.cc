// Writing and reading of shards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "lockstep/datasets/files/testing/files.h"
#include "lockstep/datasets/packed/shard_reader.h"
#include "lockstep/datasets/packed/shard_writer.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using testing::data_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;

std::span<const uint8_t> bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
std::string text(std::span<const uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::vector<std::string> kImages = {"first", "", std::string(1000, 'x'), "last one"};

// Record i has the class i - 1, the source 10 i and, if it is even, a mask.
ShardFile write_shard(const std::string& folder, const std::string& file = "a.lks") {
  ShardWriter writer(folder, file);
  for (size_t i = 0; i < kImages.size(); ++i) {
    const std::string mask = i % 2 == 0 ? "mask" + std::to_string(i) : "";
    writer.add({.class_number = static_cast<int32_t>(i) - 1,
                .width = static_cast<uint16_t>(300 + i),
                .height = 7,
                .codec = static_cast<Codec>(i),
                .image = bytes(kImages[i]),
                .mask = bytes(mask)},
               10 * i, "cats/" + std::to_string(i) + "\n.jpg");
  }
  return writer.finish({"cats", "dogs"});
}

void check_record(const ShardReader& shard, int64_t i, std::vector<uint8_t>& memory) {
  const PackedRecord record = shard.read(i, memory);
  const auto at = static_cast<size_t>(i);
  EXPECT_EQ(text(record.image), kImages[at]);
  EXPECT_EQ(text(record.mask), i % 2 == 0 ? "mask" + std::to_string(i) : "");
  EXPECT_EQ(record.class_number, i - 1);
  EXPECT_EQ(record.width, 300 + i);
  EXPECT_EQ(record.height, 7);
  EXPECT_EQ(record.codec, static_cast<Codec>(i));
}

TEST(Shard, GivesBackWhatWasWritten) {
  const TempDir dir;
  const ShardFile file = write_shard(dir.path());
  const ShardReader shard(dir / "a.lks");
  EXPECT_EQ(shard.size(), 4);
  EXPECT_EQ(file.records, 4u);
  EXPECT_EQ(file.bytes, shard.bytes());
  EXPECT_THAT(shard.class_names(), ElementsAre("cats", "dogs"));
  std::vector<uint8_t> memory;
  for (const int64_t i : {3, 0, 1, 2}) {
    check_record(shard, i, memory);
    EXPECT_EQ(shard.class_of(i), i - 1);
    EXPECT_EQ(shard.source_of(i), 10 * static_cast<uint64_t>(i));
    EXPECT_EQ(shard.name_of(i), "cats/" + std::to_string(i) + "\n.jpg");
  }
  shard.will_need({0, 1, 3});
}

TEST(Shard, IsTheSameBytesEachTime) {
  const TempDir dir;
  EXPECT_EQ(write_shard(dir.path()).hash, write_shard(dir.path(), "b.lks").hash);
  EXPECT_EQ(content(dir / "a.lks"), content(dir / "b.lks"));
}

TEST(Shard, LaysItsRecordsAtMarks) {
  const TempDir dir;
  write_shard(dir.path());
  const std::string file = content(dir / "a.lks");
  EXPECT_EQ(file.substr(0, 4), "LKSR");
  EXPECT_EQ(file.substr(32, 32), std::string(32, '\0'));
  for (const size_t at : {64, 128}) {
    EXPECT_EQ(number_at<uint64_t>(bytes(file), at) == 0, false);
    EXPECT_EQ(number_at<int32_t>(bytes(file), at + 8), at == 64 ? -1 : 0);
  }
}

TEST(Shard, MayBeEmpty) {
  const TempDir dir;
  ShardWriter(dir.path(), "a.lks").finish({});
  const ShardReader shard(dir / "a.lks");
  EXPECT_EQ(shard.size(), 0);
  EXPECT_TRUE(shard.class_names().empty());
}

TEST(Shard, ThatIsNotFinishedIsNone) {
  const TempDir dir;
  ShardWriter writer(dir.path(), "a.lks");
  writer.add({.image = bytes(kImages[2])}, 0, "a");
  EXPECT_THAT(data_error([&] { ShardReader(dir / "a.lks"); }), HasSubstr("no shard of packed data"));
}

// Every byte that is changed is found, or lies between records and means nothing.
TEST(Shard, FindsEachChangedByte) {
  const TempDir dir;
  write_shard(dir.path());
  const std::string whole = content(dir / "a.lks");
  int found = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    dir.write("b.lks", damaged);
    try {
      const ShardReader shard(dir / "b.lks");
      std::vector<uint8_t> memory;
      for (int64_t i = 0; i < shard.size(); ++i) check_record(shard, i, memory);
      EXPECT_EQ(whole[at], '\0') << at;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("b.lks: ")) << at;
      ++found;
    }
  }
  EXPECT_GT(found, static_cast<int>(whole.size()) - 32 - 4 * 63);
}

TEST(Shard, FindsEachTruncation) {
  const TempDir dir;
  write_shard(dir.path());
  const std::string whole = content(dir / "a.lks");
  for (size_t length = 0; length < whole.size(); ++length) {
    dir.write("b.lks", whole.substr(0, length));
    EXPECT_THAT(data_error([&] { ShardReader(dir / "b.lks"); }), HasSubstr("b.lks: ")) << length;
  }
}

// A file that was made to harm has right checksums and wrong numbers.
TEST(Shard, RefusesNumbersThatCantBe) {
  const TempDir dir;
  for (const uint64_t records : {uint64_t{1}, uint64_t{1} << 40, UINT64_MAX}) {
    for (const uint64_t offset : {uint64_t{0}, uint64_t{64}, uint64_t{1} << 62, UINT64_MAX}) {
      std::vector<uint8_t> head(kShardMagic.begin(), kShardMagic.end());
      append(head, kShardVersion);
      append(head, records);
      append(head, offset);
      append(head, xxh3(head));
      head.resize(1000);
      dir.write("a.lks", text(head));
      EXPECT_NE(data_error([&] { ShardReader(dir / "a.lks"); }), "") << records << " " << offset;
    }
  }
}

TEST(Shard, SaysWhichRecordIsDamaged) {
  const TempDir dir;
  write_shard(dir.path());
  std::string damaged = content(dir / "a.lks");
  damaged[64 + 30] = static_cast<char>(damaged[64 + 30] ^ 1);
  const ShardReader shard(dir.write("b.lks", damaged));
  std::vector<uint8_t> memory;
  EXPECT_THAT(data_error([&] { shard.read(0, memory); }),
              AllOf(HasSubstr("b.lks: record 0 (cats/0\\n.jpg) at byte 64"), HasSubstr("checksum")));
  check_record(shard, 1, memory);
}

TEST(Shard, OfAnotherVersionIsRefused) {
  const TempDir dir;
  write_shard(dir.path());
  std::string other = content(dir / "a.lks");
  other[4] = 2;
  EXPECT_THAT(data_error([&] { ShardReader(dir.write("a.lks", other)); }), HasSubstr("version 2, and this program"));
}

TEST(Shard, IsReadBySeveralThreads) {
  const TempDir dir;
  write_shard(dir.path());
  const ShardReader shard(dir / "a.lks");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::vector<uint8_t> memory;
      for (int n = 0; n < 100; ++n) check_record(shard, n % 4, memory);
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace lockstep::datasets
