#include "lockstep/models/shufflenet_v2.h"

#include <ATen/ATen.h>

#include <string>

#include "lockstep/models/init.h"

namespace lockstep::models {
namespace {

using nn::Activation;

constexpr const char* kName = "ShuffleNetV2";
constexpr int64_t kColors = 3;
constexpr int64_t kFirst = 24;
constexpr int64_t kFeatures = 1024;

struct Group {
  int64_t channels, units;  // the first unit halves the sides
};
constexpr Group kGroups[] = {{116, 4}, {232, 8}, {464, 4}};

}  // namespace

ShuffleUnitImpl::ShuffleUnitImpl(int64_t in, int64_t out, int64_t stride) {
  const int64_t half = out / 2;
  if (stride > 1) {
    const auto branch = nn::add_level(*this, "branch1");  // 4 is the ReLU
    beside_depthwise_ = branch->register_module("0", convolution(in, in, 3, stride, in));
    beside_norm1_ = branch->register_module("1", nn::BatchNorm2d(in));
    beside_project_ = branch->register_module("2", convolution(in, half, 1));
    beside_norm2_ = branch->register_module("3", nn::BatchNorm2d(half));
  }
  const auto branch = nn::add_level(*this, "branch2");  // 2 and 7 are the ReLUs
  expand_ = branch->register_module("0", convolution(stride > 1 ? in : half, half, 1));
  norm1_ = branch->register_module("1", nn::BatchNorm2d(half));
  depthwise_ = branch->register_module("3", convolution(half, half, 3, stride, half));
  norm2_ = branch->register_module("4", nn::BatchNorm2d(half));
  project_ = branch->register_module("5", convolution(half, half, 1));
  norm3_ = branch->register_module("6", nn::BatchNorm2d(half));
}

at::Tensor ShuffleUnitImpl::beside(const at::Tensor& x) {
  const at::Tensor inner = beside_norm1_->forward(beside_depthwise_->forward(x), Activation::kNone);
  return beside_norm2_->forward(beside_project_->forward(inner), Activation::kRelu);
}

at::Tensor ShuffleUnitImpl::through(const at::Tensor& x) {
  at::Tensor inner = norm1_->forward(expand_->forward(x), Activation::kRelu);
  inner = norm2_->forward(depthwise_->forward(inner), Activation::kNone);
  return norm3_->forward(project_->forward(inner), Activation::kRelu);
}

at::Tensor ShuffleUnitImpl::forward(const at::Tensor& x) {
  if (beside_depthwise_) return shuffle_channels(at::cat({beside(x), through(x)}, 1), 2);
  const int64_t half = x.size(1) / 2;
  return shuffle_channels(at::cat({x.narrow(1, 0, half), through(x.narrow(1, half, half))}, 1), 2);
}

ShuffleNetV2Impl::ShuffleNetV2Impl(const ShuffleNetV2Options& options, uint64_t seed) {
  const int64_t classes = checked_option(kName, "classes", options.classes, kMaxClasses);
  first_ = register_module("conv1", ConvNorm(kColors, kFirst, 3, 2));
  int64_t in = kFirst;
  int number = 2;
  for (const Group& group : kGroups) {
    const auto level = nn::add_level(*this, "stage" + std::to_string(number++));
    for (int64_t unit = 0; unit < group.units; ++unit) {
      units_.push_back(
          level->register_module(std::to_string(unit), ShuffleUnit(in, group.channels, unit == 0 ? 2 : 1)));
      in = group.channels;
    }
  }
  last_ = register_module("conv5", ConvNorm(in, kFeatures, 1));
  fc_ = register_module("fc", torch::nn::Linear(kFeatures, classes));
  draw_as_torch(*this, seed);
}

at::Tensor ShuffleNetV2Impl::forward(const at::Tensor& images) { return nn::run(layers(), images); }

std::vector<nn::Layer> ShuffleNetV2Impl::layers() const {
  std::vector<nn::Layer> all;
  all.push_back(nn::layer_of(first_, [](ConvNorm& conv, const at::Tensor& images) {
    check_images(kName, images, kColors);
    return at::max_pool2d(conv->forward(images, Activation::kRelu), {3, 3}, {2, 2}, {1, 1});
  }));
  for (const ShuffleUnit& unit : units_) {
    all.push_back(nn::layer_of(unit, [](ShuffleUnit& own, const at::Tensor& x) { return own->forward(x); }));
  }
  all.push_back(nn::layer_of(last_, [](ConvNorm& conv, const at::Tensor& x) {
    return at::adaptive_avg_pool2d(conv->forward(x, Activation::kRelu), {1, 1}).flatten(1);
  }));
  all.push_back(nn::layer_of(fc_, [](torch::nn::Linear& fc, const at::Tensor& x) { return fc->forward(x); }));
  return all;
}

}  // namespace lockstep::models
