#include "lockstep/exporting/onnx_model.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/export.h>

#include "lockstep/base/error.h"

namespace lockstep::exporting {
namespace {

using checkpoint::StringSink;
using testing::HasSubstr;

OnnxModel sum_with(const at::Tensor& tensor) {
  OnnxModel model;
  model.version = "1.2";
  model.nodes = {{"Add", {"input", "w"}, {"output"}, {}}};
  model.tensors = {{"w", tensor}};
  model.inputs = {{.name = "input", .shape = {"batch", int64_t{2}}}};
  model.outputs = {{.name = "output", .shape = {"batch", int64_t{2}}}};
  model.metadata = {{"classes", "a, b"}};
  return model;
}

std::string bytes_of(const OnnxModel& model) {
  StringSink file;
  write_onnx(model, "net.onnx", file);
  return file.content;
}

TEST(OnnxModel, IsTheFileOfTheSpecification) {
  using std::string_literals::operator""s;
  const std::string bytes = bytes_of(sum_with(at::tensor({1.0F, -2.0F})));
  EXPECT_EQ(bytes.substr(0, 17), "\x08\x08\x12\x08lockstep\x1a\x03"s + "1.2"s);
  EXPECT_THAT(bytes, HasSubstr("\x42\x04\x0a\x00\x10\x11"s)) << "opset 17 of the domain without a name";
  EXPECT_THAT(bytes, HasSubstr("\x72\x0f\x0a\x07"s + "classes\x12\x04"s + "a, b"s));
  EXPECT_THAT(bytes, HasSubstr("\x0a\x05input\x0a\x01w\x12\x06output\x1a\x06output\x22\x03"s + "Add"s));
  EXPECT_THAT(bytes, HasSubstr("\x2a\x11\x08\x02\x10\x01\x42\x01w\x4a\x08\x00\x00\x80\x3f\x00\x00\x00\xc0"s));
  EXPECT_NO_THROW(torch::jit::check_onnx_proto(bytes));
}

TEST(OnnxModel, HasAttributesOfEachKind) {
  OnnxModel model = sum_with(at::rand({1, 2}));
  model.nodes = {
      {"Resize",
       {"input4", "", "scales"},
       {"bigger"},
       {{"mode", std::string("linear")}, {"cubic_coeff_a", -0.5F}, {"exclude_outside", int64_t{0}}}},
      {"ReduceMean", {"bigger"}, {"output"}, {{"axes", std::vector<int64_t>{2, -1}}, {"keepdims", int64_t{0}}}}};
  model.tensors = {{"scales", at::tensor({1.0F, 1.0F, 2.0F, 2.0F})}};
  model.inputs = {{.name = "input4", .shape = {"batch", int64_t{2}, int64_t{3}, int64_t{3}}}};
  EXPECT_NO_THROW(torch::jit::check_onnx_proto(bytes_of(model)));
}

TEST(OnnxModel, WritesTensorsThatAreNotContiguousInTheirOrder) {
  const at::Tensor tensor = at::arange(6, at::kFloat).view({2, 3});
  EXPECT_THAT(bytes_of(sum_with(tensor.t())), HasSubstr(std::string("\x00\x00\x00\x00\x00\x00\x40\x40", 8))) << "0, 3";
}

TEST(OnnxModel, RefusesWhatNoFileCanHold) {
  StringSink file;
  const at::Tensor large = at::empty({1 << 29}, at::kFloat);
  try {
    write_onnx(sum_with(large), "net.onnx", file);
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("net.onnx: the network has 2 GiB, and an ONNX file holds less than 2 GiB"));
  }
  EXPECT_EQ(file.content, "");
  EXPECT_THROW(bytes_of(sum_with(at::rand({2}).to(at::kHalf))), ConfigError);
}

}  // namespace
}  // namespace lockstep::exporting
