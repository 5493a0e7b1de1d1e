// Pickles that are made to cost their reader much: read() expects that each is read or refused within a second and a
// bounded memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <time.h>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/long_test.h"
#include "lockstep/base/testing/peak_memory.h"
#include "lockstep/checkpoint/files/zip_writer.h"
#include "lockstep/checkpoint/formats/pickle_reader.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::string_literals;
using namespace testing_support;
using lockstep::testing_support::kMeasuresMemory;
using lockstep::testing_support::PeakMemory;
using testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kLarge = 8 * kMiB;  // of most of these pickles
constexpr size_t kLargest = 63 * kMiB;

// Seconds that this thread has computed: the machine may have other things to do.
double computed() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::string repeated(std::string_view part, size_t bytes) {
  std::string all;
  all.reserve(bytes + part.size());
  while (all.size() < bytes) all += part;
  return all;
}

std::string number(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}
std::string text(const std::string& content) { return "X" + number(content.size(), 4) + content; }

#ifdef LOCKSTEP_COVERAGE
constexpr double kMostSeconds = 20;
#else
constexpr double kMostSeconds = kMeasuresMemory ? 1.0 : 20.0;
#endif

class BadPickles : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { LOCKSTEP_LONG_TEST_IF(GetParam()); }

  // Reads the operations as the pickle of a .pt, and by itself as Paddle's files are, with unknown classes ignored or
  // not. Returns the error's line.
  std::string read(const std::string& operations) {
    const std::string pickle = "\x80\x04" + operations + ".";
    StringSink sink;
    ZipWriter zip(sink);
    zip.add("a/data.pkl", pickle);
    zip.add("a/data/0", std::string(4, '\0'));
    zip.finish();
    write_file(dir_ / "bad.pt", sink.content);
    write_file(dir_ / "bad.pdparams", pickle);
    measured(dir_ / "bad.pdparams", pickle.size());
    return measured(dir_ / "bad.pt", sink.content.size());
  }

  std::string measured(const std::string& path, size_t bytes) {
    constexpr int64_t kOwn = 24;  // of libzip's and the allocator's, beside what is charged
    malloc_trim(0);
    const PeakMemory memory;
    const double begin = computed();
    std::string line = "no error";
    try {
      read_checkpoint(path, {.ignore_unknown = GetParam()});
    } catch (const DataError& error) {
      line = error.what();
    }
    EXPECT_LT(computed() - begin, kMostSeconds) << line;
    if (kMeasuresMemory) {
      EXPECT_LT(memory.growth_mib(), static_cast<int64_t>((bytes + kReadingMemory) / kMiB) + kOwn) << line;
    }
    return line;
  }

  TempDir dir_;
};

constexpr const char* kMemory = "would take more than 96 MiB of memory";

TEST_P(BadPickles, MillionsOfContainers) {
  for (const std::string_view empty : {")", "]", "}", "\x8f"})
    EXPECT_THAT(read(repeated(empty, kLarge)), HasSubstr(kMemory));
  EXPECT_THAT(read("(" + repeated("]", kLarge) + "t"), HasSubstr(kMemory));
  EXPECT_THAT(read("(" + repeated("N\x85", kLarge) + "l"), HasSubstr(kMemory));
  EXPECT_THAT(read("](" + repeated("}NNs", kLarge) + "e"), HasSubstr(kMemory));
}

TEST_P(BadPickles, MillionsOfItems) {
  EXPECT_THAT(read(repeated("N", kLarge)), HasSubstr(kMemory));
  EXPECT_THAT(read(repeated("(", kLarge)), HasSubstr(kMemory));
  EXPECT_THAT(read("]" + repeated("Na", kLarge)), HasSubstr(kMemory));
  EXPECT_THAT(read("](" + repeated("N", kLarge) + "e"), HasSubstr(kMemory));
  EXPECT_THAT(read("}(" + repeated("NN", kLarge) + "u"), HasSubstr(kMemory));
  EXPECT_THAT(read("N" + repeated("2", kLarge)), HasSubstr(kMemory));
}

TEST_P(BadPickles, MillionsOfOperationsThatLeaveNothing) {
  EXPECT_THAT(read(repeated("N0", kLargest)), HasSubstr("more than 16777216 operations"));
  EXPECT_THAT(read(repeated("(1", kLargest)), HasSubstr("more than 16777216 operations"));
  EXPECT_THAT(read(repeated("(NNN1", kLargest)), HasSubstr("more than 16777216 operations"));
  EXPECT_THAT(read(repeated("\x95" + number(0, 8), kLargest)), HasSubstr("operands"));
}

// Marks above which everything lies are popped again and again.
TEST_P(BadPickles, MarksAboveManyItems) {
  const std::string items = repeated("N", kMiB);
  read(repeated("(" + items + "1", kLarge));
  EXPECT_THAT(read(repeated("(" + items + "t0", kLarge)), HasSubstr(kMemory));
}

TEST_P(BadPickles, MemoOfManyNumbers) {
  EXPECT_THAT(read("N" + repeated("\x94", kLarge)), HasSubstr(kMemory));
  for (const uint64_t stride : {1, 16, 17, 1'000'003, 1'056'323}) {  // the last ones: sizes of hash tables
    std::string puts = "N";
    for (uint64_t i = 0; i < 1'000'000; ++i) puts += "r" + number(i * stride, 4);
    read(puts);
  }
}

// All of these keys are equal modulo the sizes that hash tables grow through.
TEST_P(BadPickles, KeysThatCollide) {
  for (const uint64_t stride : {uint64_t{1} << 32, uint64_t{1'056'323} * 541'999, uint64_t{126'271} << 20}) {
    std::string items = "}(";
    for (uint64_t i = 0; i < 300'000; ++i) items += "\x8a\x08" + number(i * stride, 8) + "N";
    EXPECT_EQ(read(items + "u"), "no error") << stride;
  }
  std::string same = "}(";
  for (int i = 0; i < 1'000'000; ++i) same += "K\x01N";
  read(same + "u");
}

TEST_P(BadPickles, Nesting) {
  EXPECT_THAT(read(repeated("]", kMiB / 4) + repeated("a", kMiB / 4 - 1)), HasSubstr("nested more than 1000 deep"));
  EXPECT_THAT(read("N" + repeated("\x85", kMiB / 4)), HasSubstr("nested more than 1000 deep"));
  EXPECT_THAT(read(repeated("(", kMiB / 4) + repeated("l", kMiB / 4)), HasSubstr("nested more than 1000 deep"));
}

TEST_P(BadPickles, TextsThatTheMemoShares) {
  const std::string shared = text(std::string(16 * kMiB, 'x')) + "q\x00"s;
  EXPECT_THAT(read("](" + shared + repeated("h\x00"s, 1000) + "e"), HasSubstr("expand to more than"));
  EXPECT_THAT(read("](" + shared + repeated("h\x00"s, kLarge) + "e"), HasSubstr(kMemory));
  read(shared + repeated("h\x00"
                         "0"s,
                         kLarge));
  // As bytes at protocol 2, as names of globals, as keys of a dict that leads to many leaves.
  read(shared + "(" + repeated("c_codecs\nencode\nh\x00X\x06\x00\x00\x00latin1\x86R"s, kMiB) + "l");
  read(shared + "(" + repeated("h\x00h\x00\x93"s, kMiB) + "l");
  std::string tree = "](" + repeated("N", 1000) + "e";
  for (int i = 0; i < 100; ++i) tree = "}" + text(std::string(kMiB / 8, 'k')) + tree + "s";
  EXPECT_THAT(read(tree), HasSubstr("names that expand"));
}

TEST_P(BadPickles, LengthsThatAreNotThere) {
  for (const std::string& operation :
       {"\x8b" + number(0x7fffffff, 4), "\x8b" + number(0xffffffff, 4), "\x8d" + number(~uint64_t{0}, 8),
        "\x8e" + number(uint64_t{1} << 40, 8), "\x96" + number(~uint64_t{0}, 8), "X" + number(0xffffffff, 4),
        "B" + number(0xffffffff, 4), "T" + number(0xffffffff, 4)}) {
    EXPECT_THAT(read(operation + std::string(100, 'x')), HasSubstr("announces"));
  }
  EXPECT_THAT(read("\x95" + number(~uint64_t{0}, 8) + "N"), HasSubstr("no error"));
  EXPECT_THAT(read("\x8b" + number(kMiB, 4) + std::string(kMiB, '\1')), HasSubstr("more than 64 bits"));
}

TEST_P(BadPickles, GlobalsInMillions) {
  EXPECT_THAT(read(repeated("ctorch\nfloat32\n0", kLargest)), HasSubstr("operands"));
  EXPECT_THAT(read(text("torch") + "q\x00"s + text("float32") + "q\x01" + repeated("h\x00h\x01\x93"s + "0", kLarge)),
              HasSubstr("more than"));
  read(repeated("cx\ny\n0", kLarge));
  read("cx\ny\nq\x00"s + repeated("h\x00)R0"s, kLarge));
}

// A tensor's arguments lie in the memo, and it is rebuilt from them again and again.
TEST_P(BadPickles, MillionsOfTensors) {
  const std::string storage =
      "(" + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + "K\x01tq\x00"s;
  read(storage + repeated("h\x00Q0"s, kLarge));
  const std::string arguments = "ctorch._utils\n_rebuild_tensor_v2\nq\x01(h\x00QK\x00)))}tq\x02"s;
  read(storage + arguments + repeated("h\x01h\x02R0"s, kLarge));
  read(storage + arguments + "(" + repeated("h\x01h\x02R"s, kLarge) + "l");
}

TEST_P(BadPickles, MillionsOfNumpysObjects) {
  const std::string dtype = "cnumpy\ndtype\nq\x00"s + text("f8") + "\x85q\x01";
  read(dtype + repeated("h\x00h\x01R0"s, kLarge));
  const std::string scalars =
      "\x86q\x02"
      "cnumpy.core.multiarray\nscalar\nq\x03";
  read(dtype + "h\x00h\x01R"s +
       "C\x08"
       "12345678" +
       scalars + repeated("h\x03h\x02R0", kLargest));
  const std::string long_text = text(std::string(8 * kMiB, 'x')) + "q\x04";
  read(long_text + dtype + "h\x00h\x01R"s + "c_codecs\nencode\nh\x04" + text("latin1") + "\x86R" + scalars +
       repeated("h\x03h\x02R0", kMiB));
  const std::string array =
      "cnumpy.core.multiarray\n_reconstruct\nq\x00"
      "cnumpy\nndarray\n\x85q\x01"s;
  read(array + repeated("h\x00h\x01R0"s, kLarge));
}

TEST_P(BadPickles, DictsMadeOfPairsAgainAndAgain) {
  std::string pairs = "](" + repeated("K\x01K\x02\x86", kMiB) + "e\x85q\x00"s;
  read("ccollections\nOrderedDict\nq\x01" + pairs + repeated("h\x01h\x00R0"s, kLarge));
}

// libzip keeps more about an entry than a file needs for one.
TEST_P(BadPickles, ZipDirectoryOfManyEntries) {
  StringSink sink;
  ZipWriter zip(sink);
  zip.add("a/data.pkl", "\x80\x02N.");
  for (int i = 0; i < 200'000; ++i) zip.add("a/" + std::to_string(i), "");
  zip.finish();
  write_file(dir_ / "bad.pt", sink.content);
  EXPECT_THAT(measured(dir_ / "bad.pt", sink.content.size()), HasSubstr("whose directory of 200001 entries"));
}

INSTANTIATE_TEST_SUITE_P(, BadPickles, testing::Bool(),
                         [](const auto& info) { return info.param ? "IgnoringUnknown" : "Strict"; });

}  // namespace
}  // namespace lockstep::checkpoint
