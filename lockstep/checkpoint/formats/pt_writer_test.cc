#include "lockstep/checkpoint/formats/pt_writer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/command.h"
#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/formats/testing/files.h"
#include "lockstep/checkpoint/formats/value_view.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;

// All that a checkpoint may hold, without chance.
Value example() {
  const at::Tensor whole = at::arange(24, at::kFloat);
  Dict types;
  for (const auto& [name, dtype] : {std::pair{"float16", at::kHalf},
                                    {"bfloat16", at::kBFloat16},
                                    {"float32", at::kFloat},
                                    {"float64", at::kDouble},
                                    {"int8", at::kChar},
                                    {"uint8", at::kByte},
                                    {"int16", at::kShort},
                                    {"int32", at::kInt},
                                    {"int64", at::kLong},
                                    {"bool", at::kBool},
                                    {"uint16", at::kUInt16},
                                    {"complex64", at::kComplexFloat},
                                    {"float8_e5m2", at::kFloat8_e5m2}}) {
    types.set(name, at::arange(5, at::kFloat).to(dtype));
  }
  return Dict{
      {"types", types},
      {"whole", whole},
      {"transposed", whole.slice(0, 4).view({4, 5}).t()},
      {"same_memory_other_type", whole.view(at::kInt)},
      {"window", at::arange(1000, at::kLong).slice(0, 500, 520, 3)},
      {"channels_last", at::arange(48, at::kFloat).reshape({2, 3, 2, 4}).contiguous(at::MemoryFormat::ChannelsLast)},
      {"scalar", at::full({}, 5, at::kLong)},
      {"empty", at::zeros({0, 3})},
      {"expanded", at::ones({1}).expand({3})},
      {"optimizer",
       Dict{{"state", Dict{{0, Dict{{"momentum_buffer", at::ones({2, 2})}}}}},
            {"param_groups", List{Dict{{"lr", 0.1}, {"betas", Tuple{{0.9, 0.999}}}, {"params", List{0, 1}}}}}}},
      {"numbers", List{0, -1, 255, 65536, int64_t{1} << 62, -(int64_t{1} << 40), 1e-8}},
      {"note", "na\xc3\xafve"},
      {"bytes", Bytes{std::string("\x00\x80\xff", 3)}},
      {"nothing", Value()},
      {"best", true},
      {"none of it", List{Dict{}, List{}, Tuple{}}}};
}

std::string bytes_of(const Value& value) {
  StringSink sink;
  write_pt(value, sink);
  return sink.content;
}

TEST(PtWriter, WhatIsWrittenIsReadBack) {
  const TempDir dir;
  write_pt(example(), dir / "e.pt");
  const Value read = read_pt(dir / "e.pt");
  EXPECT_EQ(describe(read).dump(1), describe(example()).dump(1));
  const ValueView view(read, "e.pt");
  EXPECT_TRUE(view["transposed"].tensor().is_alias_of(view["whole"].tensor()));
  EXPECT_TRUE(view["channels_last"].tensor().is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(view["window"].tensor().storage().nbytes(), 19 * sizeof(int64_t));  // of 8,000 bytes
  EXPECT_EQ(view["expanded"].tensor().stride(0), 0);
}

TEST(PtWriter, EqualValuesGiveEqualBytes) { EXPECT_EQ(bytes_of(example()), bytes_of(example())); }

// The file beside this test was read with PyTorch 2.11, weights_only=True, and gave the .json beside it.
TEST(PtWriter, WritesTheBytesThatPyTorchWasSeenToRead) {
  const std::string path = ::testing::TempDir() + "written_by_lockstep.pt";
  write_pt(example(), path);
  EXPECT_TRUE(read_file(path) == read_file(testdata() + "/written_by_lockstep.pt"))
      << "if the change is meant: compare " << path << " with verify_with_pytorch.py, then put it into testdata/";
  EXPECT_EQ(describe(example()).dump(1),
            nlohmann::ordered_json::parse(read_file(testdata() + "/written_by_lockstep.expected.json")).dump(1));
}

TEST(Interop, PyTorchReadsWhatIsWritten) {
  constexpr int kNoPyTorch = 77;
  const char* python = std::getenv("LOCKSTEP_PYTORCH_PYTHON");
  const TempDir dir;
  write_pt(example(), dir / "e.pt");
  const auto output = lockstep::testing_support::run_command(cat(python == nullptr ? "python3" : python, " ",
                                                                 testdata(), "/verify_with_pytorch.py ", dir / "e.pt",
                                                                 python == nullptr ? " 2>/dev/null" : ""));
  if (output.status == kNoPyTorch || output.status == 127) {
    GTEST_SKIP() << "no Python with PyTorch; name one in LOCKSTEP_PYTORCH_PYTHON";
  }
  ASSERT_EQ(output.status, 0);
  EXPECT_EQ(nlohmann::ordered_json::parse(output.text).dump(1), describe(example()).dump(1));
}

}  // namespace
}  // namespace lockstep::checkpoint
