#include "lockstep/checkpoint/formats/pickle_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/formats/describe.h"
#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::string_view_literals;
using testing::HasSubstr;
using testing_support::error_of;

std::string read(std::string_view pickle) {
  return describe(Dict{{"v", read_pickle(pickle, {.name = "p"}).value}}).dump();
}

std::string refusal(std::string_view pickle) {
  return error_of<DataError>([&] { read_pickle(pickle, {.name = "p"}); });
}

// The pickles are CPython's: pickle.dumps(value, protocol).
TEST(PickleReader, ReadsProtocolTwo) {
  EXPECT_EQ(read("\x80\x02}q\x00(X\x01\x00\x00\x00"
                 "aq\x01K\x05K\x01\x89X\x01\x00\x00\x00"
                 "bq\x02G?\xf8\x00\x00\x00\x00\x00\x00u."sv),
            R"({"v/a":{"value":5},"v/1":{"value":false},"v/b":{"value":1.5}})");
  EXPECT_EQ(
      read("\x80\x02]q\x00(J\xfe\xff\xff\xff\x8a\x05\x00\x00\x00\x00\x02M\x00\x01N\x88\x85q\x01"
           "e."sv),
      R"({"v/0":{"value":-2},"v/1":{"value":8589934592},"v/2":{"value":256},"v/3":{"value":null},"v/4/0":{"value":true}})");
}

TEST(PickleReader, ReadsFramesAndShortStringsOfProtocolFour) {
  EXPECT_EQ(read("\x80\x04\x95\x0c\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01"
                 "a\x94"
                 "C\x02hi\x94s."sv),
            R"({"v/a":{"value":"6869"}})");
  EXPECT_EQ(read("\x80\x04\x95\x11\x00\x00\x00\x00\x00\x00\x00\x8c\x05torch\x94\x8c\x05int64\x94\x93\x94."sv),
            R"({"v":{"value":"torch.int64"}})");
}

TEST(PickleReader, ReadsSetsBytesAndSizes) {
  EXPECT_EQ(read("\x80\x04\x8f\x94(K\x01\x90."sv), R"({"v/0":{"value":1}})");
  EXPECT_EQ(read("\x80\x02"
                 "c_codecs\nencode\nX\x03\x00\x00\x00\x00\xc2\x80X\x06\x00\x00\x00latin1\x86R."sv),
            R"({"v":{"value":"0080"}})");
  EXPECT_EQ(read("\x80\x02"
                 "ctorch\nSize\nK\x02\x85\x85R."sv),
            R"({"v/0":{"value":2}})");
}

TEST(PickleReader, SaysHowMuchItRead) {
  const auto result = read_pickle("\x80\x02K\x05.rest"sv, {.name = "p"});
  EXPECT_EQ(result.bytes_read, 5u);
}

TEST(PickleReader, LaterKeysReplaceEarlierOnes) {
  EXPECT_EQ(read("\x80\x02}(K\x01K\x02K\x01K\x03u."sv), R"({"v/1":{"value":3}})");
}

TEST(PickleReader, NamesTheGlobalItRefuses) {
  EXPECT_EQ(refusal("\x80\x02}q\x00"
                    "cos\nsystem\nX\x02\x00\x00\x00ls\x85R."sv),
            "p: byte 5: global os.system is not one that a checkpoint may name");
  EXPECT_EQ(refusal("\x80\x04\x8c\x02os\x8c\x06system\x93."sv),
            "p: byte 14: global os.system is not one that a checkpoint may name");
}

TEST(PickleReader, RefusesWhatNeedsClasses) {
  for (const auto pickle : {"(ios\nsystem\n."sv, "(os."sv, "\x82\x01."sv, "\x92."sv, "\x97."sv, "Pid\n."sv}) {
    EXPECT_THAT(refusal(pickle), HasSubstr("is none that a checkpoint needs"));
  }
}

TEST(PickleReader, RefusesWhatIsCutShort) {
  const auto whole =
      "\x80\x02}q\x00(X\x01\x00\x00\x00"
      "aq\x01K\x05M\x01\x02\x89u."sv;
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THAT(refusal(whole.substr(0, length)), testing::StartsWith("p: byte ")) << length;
  }
  EXPECT_EQ(refusal("\x80\x02X\xff\xff\xff\x7f"sv), "p: byte 2: announces 2147483647 bytes, but only 0 are left");
  EXPECT_EQ(refusal("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff"sv),
            "p: byte 2: announces 18446744073709551615 bytes, but only 0 are left");
}

TEST(PickleReader, RefusesLeftoversAndUnknownProtocols) {
  EXPECT_EQ(refusal("\x80\x02NN."sv), "p: byte 4: ends with more than its result on the stack");
  EXPECT_EQ(refusal("\x80\x09N."sv), "p: byte 0: pickle protocol 9 is not known");
  EXPECT_EQ(refusal("\x80\x02."sv), "p: byte 2: an operation without its operands");
}

TEST(PickleReader, DeepAndCircularPicklesCostLittle) {
  EXPECT_THAT(refusal(std::string(200'000, ']') + std::string(199'999, 'a') + "."), HasSubstr("1000 deep"));
  EXPECT_THAT(refusal("]q\x00h\x00"
                      "a."sv),
              HasSubstr("holds itself"));
  EXPECT_THAT(refusal("\x80\x02]q\x00(" + std::string(1u << 20, '(') + "."), HasSubstr("without its operands"));
}

}  // namespace
}  // namespace lockstep::checkpoint
