// Convolutions, norms, pooling, resizing and products in ONNX.
#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "lockstep/exporting/operator.h"

namespace lockstep::exporting {
namespace {

using Integers = std::vector<int64_t>;

// A list of one number stands for all spatial dimensions.
Integers spatial(const Operator& op, const char* name, size_t dimensions) {
  Integers given = op.integers(name);
  if (given.size() == 1) given.resize(dimensions, given[0]);
  return given;
}

// ONNX counts what is added before all dimensions, and then what is added behind.
Integers both_sides(const Integers& padding) {
  Integers pads = padding;
  pads.insert(pads.end(), padding.begin(), padding.end());
  return pads;
}

std::vector<std::string> with_bias(const Operator& op, std::vector<std::string> inputs) {
  if (op.has("bias")) inputs.push_back(op.tensor("bias"));
  return inputs;
}

void convolution(Operator& op) {
  const Integers filters = op.sizes("weight");
  const size_t dimensions = filters.size() - 2;
  const bool transposed = op.has("transposed") && op.flag("transposed");
  std::vector<OnnxAttribute> attributes = {
      {"kernel_shape", Integers(filters.begin() + 2, filters.end())},
      {"strides", spatial(op, "stride", dimensions)},
      {"pads", both_sides(spatial(op, "padding", dimensions))},
      {"dilations", spatial(op, "dilation", dimensions)},
      {"group", op.integer("groups")},
  };
  if (transposed) attributes.push_back({"output_padding", spatial(op, "output_padding", dimensions)});
  op.becomes(transposed ? "ConvTranspose" : "Conv", with_bias(op, {op.tensor("input"), op.tensor("weight")}),
             attributes);
}

void batch_norm(Operator& op) {
  if (op.flag("training") || !op.has("running_mean")) op.refuse("normalises by its batch");
  const Integers channels = {op.sizes("running_mean")[0]};
  const auto of_channels = [&](const char* name, double otherwise) {
    return op.has(name) ? op.tensor(name) : op.graph.constant(at::full(channels, otherwise, at::kFloat));
  };
  op.becomes("BatchNormalization",
             {op.tensor("input"), of_channels("weight", 1), of_channels("bias", 0), op.tensor("running_mean"),
              op.tensor("running_var")},
             {{"epsilon", static_cast<float>(op.number("eps"))}});
}

void layer_norm(Operator& op) {
  const Integers shape = op.integers("normalized_shape");
  const std::string weight = op.has("weight") ? op.tensor("weight") : op.graph.constant(at::ones(shape));
  op.becomes("LayerNormalization", with_bias(op, {op.tensor("input"), weight}),
             {{"axis", -static_cast<int64_t>(shape.size())}, {"epsilon", static_cast<float>(op.number("eps"))}});
}

std::vector<OnnxAttribute> window(const Operator& op) {
  const size_t dimensions = op.sizes("self").size() - 2;
  const Integers kernel = spatial(op, "kernel_size", dimensions);
  const Integers stride = op.integers("stride");
  return {{"kernel_shape", kernel},
          {"strides", stride.empty() ? kernel : spatial(op, "stride", dimensions)},
          {"pads", both_sides(spatial(op, "padding", dimensions))},
          {"ceil_mode", op.flag("ceil_mode") ? int64_t{1} : int64_t{0}}};
}

void max_pool(Operator& op) {
  std::vector<OnnxAttribute> attributes = window(op);
  attributes.push_back({"dilations", spatial(op, "dilation", op.sizes("self").size() - 2)});
  op.becomes("MaxPool", {op.tensor("self")}, attributes);
}

void average_pool(Operator& op) {
  if (op.flag("ceil_mode")) op.refuse("with ceil_mode is computed otherwise by ONNX Runtime");
  if (op.has("divisor_override")) op.refuse("has a divisor_override");
  std::vector<OnnxAttribute> attributes = window(op);
  attributes.push_back({"count_include_pad", op.flag("count_include_pad") ? int64_t{1} : int64_t{0}});
  op.becomes("AveragePool", {op.tensor("self")}, attributes);
}

// [out, in]: row i has the shares of the window of adaptive pooling's output i.
at::Tensor window_means(int64_t in, int64_t out) {
  at::Tensor means = at::zeros({out, in}, at::kFloat);
  for (int64_t i = 0; i < out; ++i) {
    const int64_t first = i * in / out, end = ((i + 1) * in + out - 1) / out;
    means[i].narrow(0, first, end - first).fill_(1.0 / static_cast<double>(end - first));
  }
  return means;
}

// Windows of several sizes are two products with matrices.
void adaptive_average_pool(Operator& op) {
  const Integers in = op.sizes("self"), out = spatial(op, "output_size", 2);
  if (out == Integers{1, 1}) return op.becomes("GlobalAveragePool", {op.tensor("self")});
  if (op.graph.sizes_vary) op.refuse("to other sides than 1 needs images of one size: leave out --dynamic-size");
  const int64_t height = in[in.size() - 2], width = in[in.size() - 1];
  const std::string columns =
      op.graph.add("MatMul", {op.tensor("self"), op.graph.constant(window_means(width, out[1]).t().contiguous())});
  op.becomes("MatMul", {op.graph.constant(window_means(height, out[0])), columns});
}

// A Gemm takes matrices alone.
void linear(Operator& op) {
  const std::string input = op.tensor("input"), weight = op.tensor("weight");
  if (op.sizes("input").size() == 2) {
    return op.becomes("Gemm", with_bias(op, {input, weight}), {{"transB", int64_t{1}}});
  }
  const std::string turned = op.graph.add("Transpose", {weight}, {{"perm", Integers{1, 0}}});
  const std::string product = op.graph.add("MatMul", {input, turned});
  op.has("bias") ? op.becomes("Add", {product, op.tensor("bias")}) : op.is(product);
}

void add_product(Operator& op) {
  op.becomes("Gemm", {op.tensor("mat1"), op.tensor("mat2"), op.tensor("self")},
             {{"alpha", static_cast<float>(op.number("alpha"))}, {"beta", static_cast<float>(op.number("beta"))}});
}

void product(Operator& op) { op.becomes("MatMul", {op.tensor("self"), op.tensor(op.has("mat2") ? "mat2" : "other")}); }

// By whole factors where it can be, which hold for images of other sizes too.
void resize(Operator& op, const char* mode, const char* coordinates, const char* self) {
  const Integers in = op.sizes(self), out = op.output_sizes();
  std::vector<float> scales = {1, 1};
  bool is_whole = true;
  for (size_t i = 2; i < in.size(); ++i) {
    is_whole = is_whole && out[i] % in[i] == 0;
    scales.push_back(static_cast<float>(out[i] / in[i]));
  }
  std::vector<OnnxAttribute> attributes = {{"mode", std::string(mode)},
                                           {"coordinate_transformation_mode", std::string(coordinates)}};
  if (std::string(mode) == "nearest") attributes.push_back({"nearest_mode", std::string("floor")});
  if (is_whole) return op.becomes("Resize", {op.tensor(self), "", op.graph.constant(at::tensor(scales))}, attributes);
  if (op.graph.sizes_vary) op.refuse("by no whole factor needs images of one size: leave out --dynamic-size");
  const std::string shape = op.graph.add("Shape", {op.tensor(self)}, {{"start", int64_t{0}}, {"end", int64_t{2}}});
  const std::string sizes =
      op.graph.add("Concat", {shape, op.graph.constant(Integers(out.begin() + 2, out.end()))}, {{"axis", int64_t{0}}});
  op.becomes("Resize", {op.tensor(self), "", "", sizes}, attributes);
}

const char* self_of(const Operator& op) { return op.has("input") ? "input" : "self"; }

void resize_linear(Operator& op) {
  resize(op, "linear", op.flag("align_corners") ? "align_corners" : "half_pixel", self_of(op));
}
void resize_nearest(Operator& op) { resize(op, "nearest", "asymmetric", self_of(op)); }

void embedding(Operator& op) { op.becomes("Gather", {op.tensor("weight"), op.tensor("indices")}); }

}  // namespace

const Translations& layer_translations() {
  static const Translations table = {
      {"_convolution", convolution},
      {"convolution", convolution},
      {"conv1d", convolution},
      {"conv2d", convolution},
      {"batch_norm", batch_norm},
      {"layer_norm", layer_norm},
      {"max_pool1d", max_pool},
      {"max_pool2d", max_pool},
      {"avg_pool2d", average_pool},
      {"adaptive_avg_pool2d", adaptive_average_pool},
      {"linear", linear},
      {"addmm", add_product},
      {"mm", product},
      {"bmm", product},
      {"matmul", product},
      {"upsample_bilinear2d", resize_linear},
      {"upsample_nearest2d", resize_nearest},
      {"embedding", embedding},
  };
  return table;
}

}  // namespace lockstep::exporting
