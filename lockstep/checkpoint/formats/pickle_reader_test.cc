#include "lockstep/checkpoint/formats/pickle_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/contents/describe.h"
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
  EXPECT_EQ(
      refusal("\x80\x02}q\x00"
              "cos\nsystem\nX\x02\x00\x00\x00ls\x85R."sv),
      "p: byte 5: global os.system is not one that a checkpoint may name (--ignore-unknown reads the rest without "
      "it)");
  EXPECT_THAT(refusal("\x80\x04\x8c\x02os\x8c\x06system\x93."sv),
              testing::StartsWith("p: byte 14: global os.system is not one that a checkpoint may name"));
}

TEST(PickleReader, NamesTheClassWhoseObjectItRefuses) {
  EXPECT_THAT(refusal("(ios\nsystem\n."sv), HasSubstr("global os.system is not one"));
  EXPECT_THAT(refusal("(cos\nsystem\no."sv), HasSubstr("global os.system is not one"));
  EXPECT_THAT(refusal("\x80\x02"
                      "cargparse\nNamespace\n)\x81}b."sv),
              HasSubstr("global argparse.Namespace is not one"));
  EXPECT_THAT(refusal("\x80\x04"
                      "ca\nB\n)}\x92."sv),
              HasSubstr("global a.B is not one"));
}

TEST(PickleReader, RefusesWhatNeedsARegistry) {
  for (const auto pickle : {"\x82\x01."sv, "\x83\x01\x00."sv, "\x84\x01\x00\x00\x00."sv, "\x97."sv, "\x98."sv,
                            "Pid\n."sv, "I5\n."sv, "S'a'\n."sv, "F1\n."sv, "V\n."sv, "g0\n."sv}) {
    EXPECT_THAT(refusal(pickle), HasSubstr("is none that a checkpoint needs"));
  }
}

TEST(PickleReader, UnknownObjectsAreLeavesWhereTheyAreIgnored) {
  const auto read = [](std::string_view pickle) {
    return describe(Dict{{"v", read_pickle(pickle, {.name = "p", .ignore_unknown = true}).value}}).dump();
  };
  const std::string system = R"({"v":{"opaque":"os.system"}})";
  // Called, made, made with keywords, as an instance of protocol 0, with a state, as a list and as a dict.
  for (const auto pickle :
       {"cos\nsystem\n."sv, "cos\nsystem\nX\x02\x00\x00\x00ls\x85R."sv, "cos\nsystem\n)\x81."sv,
        "cos\nsystem\n)}\x92."sv, "cos\nsystem\n)}X\x01\x00\x00\x00kK\x01s\x92."sv, "(ios\nsystem\n."sv,
        "(cos\nsystem\nK\x01o."sv, "cos\nsystem\n)\x81}X\x01\x00\x00\x00kK\x01sb."sv,
        "cos\nsystem\n)\x81K\x01"
        "a."sv,
        "cos\nsystem\n)\x81(K\x01"
        "e."sv,
        "cos\nsystem\n)\x81(K\x01K\x02u."sv, "cos\nsystem\n)\x81K\x01K\x02s."sv, "cos\nsystem\n)R)R."sv,
        "\x8c\x02os\x8c\x06system\x93."sv}) {
    EXPECT_EQ(read(pickle), system) << pickle;
  }
  EXPECT_EQ(read("}X\x01\x00\x00\x00"
                 "aca\nB\n)\x81}bsX\x01\x00\x00\x00"
                 "bK\x05s."sv),
            R"({"v/a":{"opaque":"a.B"},"v/b":{"value":5}})");
}

TEST(PickleReader, ReadsDefaultDictsAndByteArrays) {
  EXPECT_EQ(read("\x80\x02"
                 "ccollections\ndefaultdict\nc__builtin__\nlist\n\x85RK\x01K\x02s."sv),
            R"({"v/1":{"value":2}})");
  EXPECT_EQ(read("\x80\x03"
                 "cbuiltins\nbytearray\nC\x02hi\x85R."sv),
            R"({"v":{"value":"6869"}})");
  EXPECT_EQ(read("\x80\x05\x96\x02\x00\x00\x00\x00\x00\x00\x00hi."sv), R"({"v":{"value":"6869"}})");
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
