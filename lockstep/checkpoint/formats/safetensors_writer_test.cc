#include "lockstep/checkpoint/formats/safetensors_writer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/testing/files.h"
#include "lockstep/checkpoint/formats/testing/safetensors_file.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;
using testing::HasSubstr;

std::string written(const Dict& tensors) {
  StringSink sink;
  write_safetensors(tensors, sink);
  return sink.content;
}

std::string refusal(const Dict& tensors) {
  return error_of<ConfigError>([&] { written(tensors); });
}

TEST(SafetensorsWriter, WritesTheLibrarysBytes) {
  const Dict tensors{{"b", at::full({2}, 1, at::kByte)},
                     {"z", at::full({}, 2, at::kLong)},
                     {"c", at::full({1}, 3, at::kFloat)},
                     {"a", at::full({1, 1}, 4, at::kFloat)}};
  std::string header = R"({"__metadata__":{"format":"pt"},)" + safetensors_entry("z", "I64", "[]", 0, 8) + "," +
                       safetensors_entry("a", "F32", "[1,1]", 8, 12) + "," +
                       safetensors_entry("c", "F32", "[1]", 12, 16) + "," +
                       safetensors_entry("b", "U8", "[2]", 16, 18) + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const auto bytes = [](const at::Tensor& tensor) {
    return std::string(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  };
  EXPECT_EQ(written(tensors),
            safetensors_file(header, bytes(at::full({1}, 2, at::kLong)) + bytes(at::full({1}, 4, at::kFloat)) +
                                         bytes(at::full({1}, 3, at::kFloat)) + std::string("\1\1", 2)));
}

TEST(SafetensorsWriter, ReadsBackAllTypes) {
  const TempDir dir;
  Dict tensors{{"__metadata__", Dict{{"by", "\"me\"\n"}, {"format", "pt"}}}};
  for (const at::ScalarType dtype :
       {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kFloat8_e4m3fn, at::kFloat8_e5m2, at::kLong, at::kInt,
        at::kShort, at::kChar, at::kByte, at::kBool, at::kUInt16, at::kUInt32, at::kUInt64, at::kComplexFloat}) {
    tensors.set(c10::toString(dtype), at::arange(6, at::kFloat).view({2, 3}).to(dtype));
  }
  tensors.set("empty", at::zeros({3, 0}));
  write_safetensors(tensors, dir / "a.safetensors");
  const Value read = read_checkpoint(dir / "a.safetensors");
  EXPECT_EQ(read.get_if<Dict>()->size(), tensors.size());
  for (const auto& [key, value] : tensors) {
    const Value* found = read.get_if<Dict>()->find(key);
    ASSERT_NE(found, nullptr) << key_text(key);
    EXPECT_EQ(describe(*found).dump(), describe(value).dump()) << key_text(key);
  }
}

TEST(SafetensorsWriter, WritesRowMajorWhateverTheStrides) {
  const at::Tensor whole = at::arange(24, at::kFloat).view({1, 2, 3, 4});
  const Dict tensors{{"last", whole.contiguous(at::MemoryFormat::ChannelsLast)},
                     {"view", whole.flatten().slice(0, 1, 9, 2)},
                     {"all", whole},
                     {"conjugate", at::complex(at::ones({2}), at::ones({2})).conj()}};
  Dict dense;
  for (const auto& [key, value] : tensors) dense.set(key, value.get_if<at::Tensor>()->contiguous().resolve_conj());
  EXPECT_EQ(written(tensors), written(dense));
}

// Tensors that are still in a file are written from there.
TEST(SafetensorsWriter, TakesTensorsOutOfAnOpenFile) {
  const TempDir dir;
  const at::Tensor large = at::arange(300'000, at::kFloat).view({300, 1000});
  const Dict tensors{{"t", large.t()}, {"large", large}, {"part", large.slice(0, 5, 280)}};
  write_pt(tensors, dir / "a.pt");
  EXPECT_EQ(written(*open_checkpoint(dir / "a.pt").get_if<Dict>()), written(tensors));
}

TEST(SafetensorsWriter, RefusesWhatTheFormatHasNoPlaceFor) {
  EXPECT_EQ(refusal(Dict{{"epoch", 3}}), "epoch: a whole number; a safetensors file holds tensors alone");
  EXPECT_EQ(refusal(Dict{{"c", at::zeros({1}, at::kComplexDouble)}}),
            "c: complex128, which safetensors has not; write a .pt file");
  EXPECT_THAT(refusal(Dict{{"s", at::ones({2, 2}).to_sparse()}}), HasSubstr("s: not a dense tensor"));
  EXPECT_THAT(refusal(Dict{{"__metadata__", Dict{{"a", 1}}}}),
              HasSubstr("__metadata__: a: a whole number, not a text"));
  EXPECT_THAT(refusal(Dict{{"\xff", at::ones({1})}}), HasSubstr("no UTF-8"));
}

}  // namespace
}  // namespace lockstep::checkpoint
