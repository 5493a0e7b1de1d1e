#include "lockstep/checkpoint/formats/safetensors_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/formats/byte_cursor.h"
#include "lockstep/checkpoint/formats/testing/safetensors_file.h"

namespace lockstep::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::safetensors_entry;

std::string fault_of(const std::string& entries, uint64_t data_bytes) {
  try {
    read_safetensors_header("{" + entries + "}", data_bytes);
  } catch (const Fault& fault) {
    return fault.text;
  }
  return "none";
}

TEST(SafetensorsHeader, SaysWhereTensorsLie) {
  const auto header = read_safetensors_header(
      R"({"__metadata__":{"format":"pt"},)" + safetensors_entry("b", "F32", "[2,3]", 8, 32) + "," +
          safetensors_entry("a", "I64", "[]", 0, 8) + "," + safetensors_entry("none", "BF16", "[4,0]", 32, 32) + "} ",
      32);
  ASSERT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.tensors[0].name, "b");
  EXPECT_EQ(header.tensors[0].dtype, at::kFloat);
  EXPECT_THAT(header.tensors[0].shape, ElementsAre(2, 3));
  EXPECT_EQ(header.tensors[0].begin, 8u);
  EXPECT_EQ(header.tensors[0].end, 32u);
  EXPECT_TRUE(header.tensors[1].shape.empty());
  ASSERT_TRUE(header.metadata.has_value());
  EXPECT_EQ(header.metadata->at(0).second, "pt");
  EXPECT_FALSE(read_safetensors_header("{}", 0).metadata.has_value());
}

TEST(SafetensorsHeader, KnowsTheTypesThatLibtorchHas) {
  for (const at::ScalarType dtype :
       {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kFloat8_e4m3fn, at::kFloat8_e5m2, at::kLong, at::kInt,
        at::kShort, at::kChar, at::kByte, at::kBool, at::kUInt16, at::kUInt32, at::kUInt64, at::kComplexFloat}) {
    const std::string name(safetensors_dtype(dtype));
    const auto size = c10::elementSize(dtype);
    const auto header = read_safetensors_header("{" + safetensors_entry("a", name, "[1]", 0, size) + "}", size);
    EXPECT_EQ(header.tensors[0].dtype, dtype) << name;
  }
  EXPECT_EQ(safetensors_dtype(at::kComplexDouble), "");
  EXPECT_EQ(fault_of(safetensors_entry("a", "F4", "[2]", 0, 1), 1), "a: its type F4 is none that is known here");
  EXPECT_GT(safetensors_rank(at::kLong), safetensors_rank(at::kFloat));
  EXPECT_GT(safetensors_rank(at::kFloat), safetensors_rank(at::kHalf));
}

TEST(SafetensorsHeader, RefusesOverlapsHolesAndOtherEnds) {
  const auto two = [](uint64_t begin, uint64_t end, uint64_t data) {
    return fault_of(safetensors_entry("a", "U8", "[4]", 0, 4) + "," +
                        safetensors_entry("b", "U8", "[" + std::to_string(end - begin) + "]", begin, end),
                    data);
  };
  EXPECT_EQ(two(4, 8, 8), "none");
  EXPECT_EQ(two(3, 8, 8), "b: begins at byte 3 of the data, the tensor before ends at 4");
  EXPECT_EQ(two(5, 8, 8), "b: begins at byte 5 of the data, the tensor before ends at 4");
  EXPECT_EQ(two(0, 4, 4), "b: begins at byte 0 of the data, the tensor before ends at 4");
  EXPECT_THAT(two(4, 8, 7), HasSubstr("b: ends at byte 8 of the data, and the file has 7"));
  EXPECT_EQ(two(4, 8, 9), "its tensors end at byte 8 of the data, and the file has 9");
}

TEST(SafetensorsHeader, RefusesShapesThatDoNotFitTheirBytes) {
  EXPECT_EQ(fault_of(safetensors_entry("a", "F32", "[3]", 0, 8), 8),
            "a: data_offsets 0 to 8, its shape needs 12 bytes");
  EXPECT_THAT(fault_of(safetensors_entry("a", "U8", "[4]", 8, 4), 8), HasSubstr("data_offsets 8 to 4"));
  const std::string big = "1099511627776";
  EXPECT_EQ(fault_of(safetensors_entry("a", "F32", "[" + big + "," + big + "]", 0, 8), 8),
            "a: a shape that no memory holds");
  EXPECT_EQ(fault_of(safetensors_entry("a", "F32", "[0," + big + "," + big + "]", 0, 0), 0),
            "a: a shape that no memory holds");
  EXPECT_THAT(fault_of(safetensors_entry("a", "F32", "[18446744073709551615]", 0, 8), 8), HasSubstr("a/shape"));
  EXPECT_THAT(fault_of(safetensors_entry("a", "F32", "[-1]", 0, 8), 8), HasSubstr("a/shape: -1 where none belongs"));
  std::string many = "[1";
  for (int i = 0; i < 64; ++i) many += ",1";
  EXPECT_THAT(fault_of(safetensors_entry("a", "F32", many + "]", 0, 4), 4), HasSubstr("a/shape"));
}

TEST(SafetensorsHeader, BoundsTensorsAndTexts) {
  std::string tensors, texts;
  for (size_t i = 0; i <= kMaxSafetensorsTensors; ++i) {
    tensors += (i == 0 ? "" : ",") + safetensors_entry(std::to_string(i), "U8", "[0]", 0, 0);
  }
  for (size_t i = 0; i <= kMaxSafetensorsTexts; ++i) texts += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":\"\"";
  EXPECT_EQ(fault_of(tensors, 0), "more than 131072 tensors");
  EXPECT_EQ(fault_of("\"__metadata__\":{" + texts + "}", 0), "__metadata__: more than 65536 texts");
}

TEST(SafetensorsHeader, RefusesOtherForms) {
  EXPECT_EQ(fault_of(R"("a":{"dtype":"U8","shape":[1]})", 1), "a: lacks its dtype, shape or data_offsets");
  EXPECT_EQ(fault_of(R"("a":{},"b":{})", 0), "a: lacks its dtype, shape or data_offsets");
  EXPECT_EQ(fault_of(R"("a":1)", 1), "a: a number where none belongs");
  EXPECT_EQ(fault_of(R"("a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]})", 1),
            "a/shape: a list where none belongs");
  EXPECT_EQ(fault_of(R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]})", 1),
            "a/data_offsets: a number where none belongs");
  EXPECT_EQ(fault_of(R"("a":{"dtype":"U8","shape":[1],"scale":2,"data_offsets":[0,1]})", 1),
            "a/scale: a number where none belongs");
  EXPECT_EQ(fault_of(R"("a":{"dtype":"U8","shape":[{}],"data_offsets":[0,1]})", 1),
            "a/shape: an object where none belongs");
  EXPECT_EQ(fault_of(R"("__metadata__":{"step":3})", 0), "__metadata__/step: a number where none belongs");
  const std::string entry = safetensors_entry("a", "U8", "[1]", 0, 1);
  EXPECT_EQ(fault_of(entry + "," + entry, 1), "a: comes twice");
}

}  // namespace
}  // namespace lockstep::checkpoint
