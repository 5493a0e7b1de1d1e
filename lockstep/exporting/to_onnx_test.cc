#include "lockstep/exporting/to_onnx.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/error.h"

namespace lockstep::exporting {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Function = std::function<at::Tensor(const at::Tensor& x)>;

OnnxModel model_of(const torch::nn::Module& module, const Function& forward, const at::Tensor& x,
                   const OnnxOptions& options = {}) {
  return to_onnx(trace(module, [&](const std::vector<at::Tensor>& inputs) { return forward(inputs[0]); }, {x}),
                 options);
}
OnnxModel model_of(const Function& forward, const at::Tensor& x, const OnnxOptions& options = {}) {
  return model_of(torch::nn::Module(), forward, x, options);
}

std::vector<std::string> operators(const OnnxModel& model) {
  std::vector<std::string> names;
  for (const auto& node : model.nodes) names.push_back(node.op);
  names.pop_back();  // the Identity that names the output
  return names;
}

const OnnxAttribute& attribute(const OnnxNode& node, const std::string& name) {
  for (const auto& each : node.attributes) {
    if (each.name == name) return each;
  }
  throw BugError(node.op, " has no ", name);
}

TEST(ToOnnx, NamesInputsOutputAndParametersAsTheNetworkDoes) {
  torch::nn::Linear layer(3, 2);
  const OnnxModel model = model_of(
      *layer, [&](const at::Tensor& x) { return layer(x); }, at::rand({4, 3}));
  ASSERT_THAT(operators(model), ElementsAre("Transpose", "Gemm"));
  EXPECT_THAT(model.nodes[0].inputs, ElementsAre("weight"));
  EXPECT_THAT(model.nodes[1].inputs, ElementsAre("input", "Transpose_0", "bias"));
  EXPECT_EQ(model.inputs[0].shape, (decltype(OnnxPort::shape){"batch", int64_t{3}}));
  EXPECT_EQ(model.outputs[0].name, "output");
  EXPECT_EQ(model.outputs[0].shape, (decltype(OnnxPort::shape){"batch", int64_t{2}}));
  EXPECT_TRUE(at::equal(model.tensors[0].value, layer->weight));
}

TEST(ToOnnx, NamesTheDimensionsThatVary) {
  const auto relu = [](const at::Tensor& x) { return x.relu(); };
  const at::Tensor x = at::rand({1, 3, 8, 8});
  EXPECT_EQ(model_of(relu, x, {.any_batch = false}).inputs[0].shape[0], (std::variant<int64_t, std::string>(1)));
  const OnnxModel any = model_of(relu, x, {.any_size = true});
  EXPECT_EQ(any.inputs[0].shape, (decltype(OnnxPort::shape){"batch", int64_t{3}, "height", "width"}));
  EXPECT_EQ(any.outputs[0].shape[3], (std::variant<int64_t, std::string>("output_width")));
}

TEST(ToOnnx, TranslatesConvolutions) {
  using Integers = std::vector<int64_t>;
  torch::nn::Conv2d layer(torch::nn::Conv2dOptions(4, 6, {3, 5}).stride(2).padding({1, 2}).groups(2));
  const OnnxModel model = model_of(
      *layer, [&](const at::Tensor& x) { return layer(x); }, at::rand({1, 4, 9, 9}));
  ASSERT_THAT(operators(model), ElementsAre("Conv"));
  const OnnxNode& conv = model.nodes[0];
  EXPECT_THAT(conv.inputs, ElementsAre("input", "weight", "bias"));
  EXPECT_EQ(std::get<Integers>(attribute(conv, "kernel_shape").value), (Integers{3, 5}));
  EXPECT_EQ(std::get<Integers>(attribute(conv, "pads").value), (Integers{1, 2, 1, 2}));
  EXPECT_EQ(std::get<Integers>(attribute(conv, "strides").value), (Integers{2, 2}));
  EXPECT_EQ(std::get<int64_t>(attribute(conv, "group").value), 2);
}

TEST(ToOnnx, KeepsTheBatchOfViews) {
  const auto shuffle = [](const at::Tensor& x) { return x.unflatten(1, {2, 3}).transpose(1, 2).flatten(1, 2); };
  const OnnxModel model = model_of(shuffle, at::rand({5, 6, 4, 4}));
  ASSERT_THAT(operators(model), ElementsAre("Reshape", "Transpose", "Reshape"));
  EXPECT_TRUE(at::equal(model.tensors[0].value, at::tensor({0, 2, 3, 4, 4}, at::kLong)));
  EXPECT_TRUE(at::equal(model.tensors[1].value, at::tensor({0, 6, 4, 4}, at::kLong)));
  EXPECT_TRUE(same_operators(model, model_of(shuffle, at::rand({2, 6, 4, 4}))));
  EXPECT_FALSE(same_operators(model, model_of(shuffle, at::rand({2, 6, 4, 8}))));
  const OnnxOptions any{.any_size = true};
  EXPECT_TRUE(
      same_operators(model_of(shuffle, at::rand({5, 6, 4, 4}), any), model_of(shuffle, at::rand({2, 6, 4, 8}), any)));
}

TEST(ToOnnx, LeavesOutWhatDoesNothingInEvalMode) {
  const auto nothing = [](const at::Tensor& x) { return at::dropout(x.contiguous(), 0.5, false).to(at::kFloat); };
  EXPECT_THAT(operators(model_of(nothing, at::rand({2, 3}))), IsEmpty());
}

TEST(ToOnnx, KeepsEqualConstantsOnce) {
  const auto twice = [](const at::Tensor& x) { return (x + 2) * 2; };
  EXPECT_EQ(model_of(twice, at::rand({2, 3})).tensors.size(), 1U);
}

TEST(ToOnnx, ChoosesByShapes) {
  const at::Tensor x = at::rand({1, 2, 6, 6});
  const auto of = [&](const Function& forward) { return operators(model_of(forward, x)); };
  EXPECT_THAT(of([](const at::Tensor& t) {
                return at::adaptive_avg_pool2d(t, {1, 1});
              }),
              ElementsAre("GlobalAveragePool"));
  EXPECT_THAT(of([](const at::Tensor& t) {
                return at::adaptive_avg_pool2d(t, {4, 4});
              }),
              ElementsAre("MatMul", "MatMul"));
  EXPECT_THAT(of([](const at::Tensor& t) { return at::upsample_nearest2d(t, {12, 12}); }), ElementsAre("Resize"));
  EXPECT_THAT(of([](const at::Tensor& t) {
                return at::upsample_nearest2d(t, {8, 9});
              }),
              ElementsAre("Shape", "Concat", "Resize"));
  EXPECT_THAT(of([](const at::Tensor& t) { return at::squeeze(t, 1); }), IsEmpty());
}

TEST(ToOnnx, NamesWhatHasNoTranslation) {
  const auto refusal = [](const Function& forward) -> std::string {
    try {
      model_of(forward, at::rand({2, 3, 4, 4}));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal([](const at::Tensor& x) { return x.cumsum(1); }),
              HasSubstr("export: aten::cumsum has no translation, so the network can't be an ONNX file"));
  EXPECT_THAT(refusal([](const at::Tensor& x) { return at::dropout(x, 0.5, true); }), HasSubstr("is in training"));
  EXPECT_THAT(refusal([](const at::Tensor& x) { return at::batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, false); }),
              HasSubstr("normalises by its batch"));
  EXPECT_THAT(refusal([](const at::Tensor& x) { return x.to(at::kDouble); }), HasSubstr("changes the dtype"));
  EXPECT_THAT(refusal([](const at::Tensor& x) {
                return at::avg_pool2d(x, {3, 3}, {2, 2}, {0, 0}, true);
              }),
              HasSubstr("ceil_mode"));
}

}  // namespace
}  // namespace lockstep::exporting
