#include "lockstep/checkpoint/formats/paddle_reader.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lockstep/base/testing/peak_memory.h"
#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/formats/paddle_writer.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"
#include "lockstep/checkpoint/formats/testing/files.h"
#include "lockstep/checkpoint/formats/value_view.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::string_literals;
using namespace testing_support;
using lockstep::testing_support::kMeasuresMemory;
using lockstep::testing_support::PeakMemory;
using testing::HasSubstr;

TEST(PaddleReader, IsKnownByItsStart) {
  EXPECT_TRUE(is_paddle("\x80\x02}q"));
  EXPECT_TRUE(is_paddle("\x80\x04\x95"));
  EXPECT_FALSE(is_paddle("\x80\x06}"));
  EXPECT_FALSE(is_paddle("PK\3\4"));
  EXPECT_FALSE(is_paddle(""));
  EXPECT_FALSE(is_paddle(read_file(testdata() + "/written_by_pytorch_legacy.pt").substr(0, 64)));
  EXPECT_FALSE(is_paddle_file(testdata() + "/written_by_pytorch.pt"));
}

// tests/fixtures/record_paddle.py recorded these from real Paddle.
TEST(PaddleReader, ReadsWhatPaddleWrote) {
  for (const char* name : {"model.pdparams", "model.pdopt", "tree.pdparams", "bfloat16.pdparams", "lenet.pdparams"}) {
    const std::string path = cat(fixtures(), "/paddle/", name);
    const auto expected = nlohmann::json::parse(read_file(path + ".expected.json"));
    EXPECT_EQ(nlohmann::json::parse(describe(read_checkpoint(path)).dump()).dump(1), expected.dump(1)) << name;
  }
}

class PaddleFiles : public testing::Test {
 protected:
  Value read(const std::string& content) {
    write_file(path_, content);
    return read_checkpoint(path_);
  }
  std::string refusal(const std::string& content) {
    return error_of<DataError>([&] { read(content); });
  }
  Value read_written(const Value& value) {
    write_paddle(value, path_);
    return read_checkpoint(path_);
  }
  TempDir dir_;
  std::string path_ = dir_ / "a.pdparams";
};

TEST_F(PaddleFiles, StateDictsComeBack) {
  const Value value = Dict{{"fc.weight", at::arange(6, at::kFloat).view({2, 3})},
                           {"half", at::arange(4, at::kHalf)},
                           {"brain", at::arange(4, at::kBFloat16)},
                           {"count", at::full({}, 7, at::kLong)},
                           {"none", at::zeros({0, 3})},
                           {"mask", at::ones({2}, at::kBool)},
                           {"transposed", at::arange(6, at::kInt).view({2, 3}).t()},
                           {"LR_Scheduler", Dict{{"last_epoch", 3}, {"last_lr", 0.1}}}};
  Value read = read_written(value);
  ASSERT_TRUE(is_paddle_file(path_));
  auto& dict = *read.get_if<Dict>();
  EXPECT_EQ(ValueView(read, "a")[std::string(kPaddleNames)]["brain"].text(), "brain");
  dict.set(std::string(kPaddleNames), Dict());
  EXPECT_EQ(describe(read).dump(1), describe(value).dump(1));
}

TEST_F(PaddleFiles, TreesComeBackWithoutATable) {
  const Value value =
      Dict{{"model", Dict{{"w", at::ones({2})}}}, {"master_weights", Dict{{"w", at::ones({2})}}}, {"epoch", 5}};
  EXPECT_EQ(describe(read_written(value)).dump(1), describe(value).dump(1));
  const Value mixed = Dict{{"w", at::ones({2})}, {"master_weights", Dict{{"w", at::ones({2})}}}};
  EXPECT_EQ(describe(read_written(mixed)).dump(1), describe(mixed).dump(1));
  const Value listed =
      Dict{{"all", List{Dict{{"w", at::ones({2})}}, Tuple{{at::zeros({3}), 4}}}}, {"names", List{"a", "b"}}};
  EXPECT_EQ(describe(read_written(listed)).dump(1), describe(listed).dump(1));
}

TEST_F(PaddleFiles, LargeTensorsComeBack) {
  const at::Tensor large = at::arange(1 << 16, at::kLong);
  EXPECT_TRUE(at::equal(ValueView(read_written(large), "a").tensor(), large));
}

// Their content is read into the tensors of whoever loads them, without a copy of the file.
TEST_F(PaddleFiles, LargeTensorsRemainInTheFile) {
  const at::Tensor large = at::rand({40, 1000, 400}), brain = at::rand({300'000}).to(at::kBFloat16),
                   fortran = at::rand({300, 200}).t(), small = at::rand({10});
  write_paddle(Dict{{"large", large}, {"brain", brain}, {"fortran", fortran}, {"small", small}}, path_);
  at::Tensor to = at::zeros({40, 1000, 400});
  const PeakMemory peak;
  const Value read = open_checkpoint(path_);
  const auto tensor = [&](const char* name) { return *read.get_if<Dict>()->find(name)->get_if<at::Tensor>(); };
  EXPECT_TRUE(is_stored(tensor("large")));
  EXPECT_TRUE(is_stored(tensor("brain")));
  EXPECT_TRUE(is_stored(tensor("fortran")));
  EXPECT_FALSE(is_stored(tensor("small")));
  copy_elements(to, tensor("large"));
  if (kMeasuresMemory) EXPECT_LT(peak.growth_mib(), 30);
  EXPECT_TRUE(at::equal(to, large));
  at::Tensor other = at::zeros({300'000}), turned = at::zeros({200, 300});
  copy_elements({{other, tensor("brain")}, {turned, tensor("fortran")}});
  EXPECT_TRUE(at::equal(other, brain.to(at::kFloat)));
  EXPECT_TRUE(at::equal(turned, fortran));
  EXPECT_TRUE(at::equal(tensor("small"), small));
}

TEST_F(PaddleFiles, AFileThatIsCutMeanwhileIsAnError) {
  const at::Tensor large = at::rand({500'000});
  write_paddle(Dict{{"a", large}, {"b", large}}, path_);
  const Value read = open_checkpoint(path_);
  std::filesystem::resize_file(path_, 2'500'000);
  at::Tensor to = at::zeros({500'000});
  EXPECT_THROW(copy_elements(to, *read.get_if<Dict>()->find("b")->get_if<at::Tensor>()), DataError);
}

TEST_F(PaddleFiles, TypesThatPaddleLacksAreRefused) {
  for (const auto dtype : {at::kUInt16, at::kFloat8_e5m2}) {
    EXPECT_THAT(error_of<DataError>([&] { write_paddle(at::empty({2}, dtype), path_); }),
                HasSubstr("a.pdparams: Paddle has no tensors of"));
  }
}

std::string text(const std::string& content) { return "X"s + static_cast<char>(content.size()) + "\0\0\0"s + content; }
std::string array(const std::string& content) {
  return "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85"s +
         "C\x01"
         "b\x87R(K\x01K"s +
         static_cast<char>(content.size()) +
         "\x85"
         "cnumpy\ndtype\nX\x02\0\0\0u1\x89\x88\x87R\x89"
         "C"s +
         static_cast<char>(content.size()) + content + "tb";
}

// As paddle.save reduces a tensor that is no value of a state dict.
TEST_F(PaddleFiles, TuplesOfANameAndAnArrayAreTensors) {
  for (const std::string module : {"builtins", "__builtin__"}) {
    const Value value =
        read("\x80\x04}" + text("w") + "c" + module + "\ntuple\n" + text("linear_0.w_0") + array("ab") + "\x86\x85Rs.");
    EXPECT_TRUE(at::equal(ValueView(value, "a")["w"].tensor(), at::tensor({97, 98}, at::kByte)));
  }
}

std::string pieces(const std::string& names, const std::string& shape) {
  return "\x80\x02}(" + text("b@@.0") + array("ab") + text("b@@.1") + array("c") + text("z") + array("z") +
         text("UnpackBigParamInfor@@") + "}" + text("b") + "}(" + text("OriginShape") + shape + text("slices") + "](" +
         names + "eusu.";
}

TEST_F(PaddleFiles, ArraysThatWereCutAreJoined) {
  const Value value = read(pieces(text("b@@.0") + text("b@@.1"), "K\x03K\x01\x86"));
  EXPECT_EQ(value.get_if<Dict>()->size(), 2u);
  EXPECT_TRUE(at::equal(ValueView(value, "a")["b"].tensor(), at::tensor({97, 98, 99}, at::kByte).view({3, 1})));
}

TEST_F(PaddleFiles, PiecesMustFit) {
  EXPECT_THAT(refusal(pieces(text("b@@.0"), "K\x03\x85")), HasSubstr("do not make its shape"));
  EXPECT_THAT(refusal(pieces("", "K\0\x85"s)), HasSubstr("do not make its shape"));
  EXPECT_THAT(refusal(pieces(text("b@@.0") + text("b@@.2"), "K\x03\x85")), HasSubstr("b@@.2"));
  EXPECT_THAT(refusal(pieces(text("b@@.0") + text("b@@.0"), "K\x04\x85")), HasSubstr("one piece in two places"));
  EXPECT_THAT(refusal(pieces(text("b@@.0"), "J\xff\xff\xff\xffJ\xfe\xff\xff\xff\x86")), HasSubstr("a shape of -1"));
}

TEST_F(PaddleFiles, WhatFollowsThePickleIsRefused) {
  EXPECT_THAT(refusal("\x80\x04}.more"), HasSubstr("4 bytes follow its pickle, which ends at byte 4"));
}

TEST_F(PaddleFiles, OlderFilesThatCallEvalAreRefused) {
  EXPECT_THAT(refusal("\x80\x04"
                      "cbuiltins\neval\n" +
                      text("data") + "}\x86R."),
              HasSubstr("global builtins.eval"));
}

TEST_F(PaddleFiles, TakeTwiceTheirSize) {
  if (!kMeasuresMemory) GTEST_SKIP() << "a sanitizer's memory is not ours";
  constexpr int64_t kMiBs = 64;
  write_paddle(Dict{{"w", at::ones({kMiBs << 18})}}, path_);
  const PeakMemory memory;
  const Value value = read_checkpoint(path_);
  EXPECT_LT(memory.growth_mib(), 2 * kMiBs + 8);
  EXPECT_EQ(ValueView(value, "a")["w"].tensor().numel(), kMiBs << 18);
}

}  // namespace
}  // namespace lockstep::checkpoint
