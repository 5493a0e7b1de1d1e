#include "lockstep/models/mobilenet_v2.h"

#include <ATen/ATen.h>

#include "lockstep/base/error.h"
#include "lockstep/models/init.h"

namespace lockstep::models {
namespace {

using nn::Activation;

constexpr const char* kName = "MobileNetV2";
constexpr int64_t kColors = 3;
constexpr int64_t kFirst = 32;
constexpr int64_t kFeatures = 1280;

struct Group {
  int64_t expand, channels, blocks, stride;  // the stride is the first block's
};
constexpr Group kGroups[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                             {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

}  // namespace

InvertedResidualImpl::InvertedResidualImpl(int64_t in, int64_t out, int64_t stride, int64_t expand)
    : adds_input_(stride == 1 && in == out) {
  const int64_t hidden = in * expand;
  const auto conv = nn::add_level(*this, "conv");
  int number = 0;
  const auto add = [&](auto module) { return conv->register_module(std::to_string(number++), module); };
  if (expand != 1) expand_ = add(ConvNorm(in, hidden, 1));
  depthwise_ = add(ConvNorm(hidden, hidden, 3, stride, hidden));
  project_ = add(convolution(hidden, out, 1));
  norm_ = add(nn::BatchNorm2d(out));
}

at::Tensor InvertedResidualImpl::forward(const at::Tensor& x) {
  at::Tensor inner = expand_ ? expand_->forward(x, Activation::kRelu6) : x;
  inner = depthwise_->forward(inner, Activation::kRelu6);
  return norm_->forward(project_->forward(inner), Activation::kNone, adds_input_ ? x : at::Tensor());
}

MobileNetV2Impl::MobileNetV2Impl(const MobileNetV2Options& options, uint64_t seed) : dropout_(options.dropout) {
  if (!(dropout_ >= 0 && dropout_ < 1)) throw ConfigError(kName, ": dropout is ", dropout_, ", not within [0, 1)");
  const auto features = nn::add_level(*this, "features");
  int number = 0;
  const auto add = [&](auto module) { return features->register_module(std::to_string(number++), module); };
  first_ = add(ConvNorm(kColors, kFirst, 3, 2));
  int64_t in = kFirst;
  for (const Group& group : kGroups) {
    for (int64_t block = 0; block < group.blocks; ++block) {
      blocks_.push_back(add(InvertedResidual(in, group.channels, block == 0 ? group.stride : 1, group.expand)));
      in = group.channels;
    }
  }
  last_ = add(ConvNorm(in, kFeatures, 1));
  const int64_t classes = checked_option(kName, "classes", options.classes, kMaxClasses);
  classifier_ = nn::add_level(*this, "classifier")->register_module("1", torch::nn::Linear(kFeatures, classes));

  uint64_t parameter = 0;
  for (const at::Tensor& p : parameters()) {
    const RandomStream stream = init_stream(seed, parameter++);
    if (p.dim() == 4) kaiming_normal_(p, stream, Fan::kOut);
    if (p.dim() == 2) normal_(p, 0.01, stream);
  }
  const at::NoGradGuard no_grad;
  classifier_->bias.zero_();
}

at::Tensor MobileNetV2Impl::forward(const at::Tensor& images) { return nn::run(layers(), images); }

std::vector<nn::Layer> MobileNetV2Impl::layers() const {
  std::vector<nn::Layer> all;
  all.push_back(nn::layer_of(first_, [](ConvNorm& conv, const at::Tensor& images) {
    check_images(kName, images, kColors);
    return conv->forward(images, Activation::kRelu6);
  }));
  for (const InvertedResidual& block : blocks_) {
    all.push_back(nn::layer_of(block, [](InvertedResidual& own, const at::Tensor& x) { return own->forward(x); }));
  }
  all.push_back(nn::layer_of(last_, [](ConvNorm& conv, const at::Tensor& x) {
    return at::adaptive_avg_pool2d(conv->forward(x, Activation::kRelu6), {1, 1}).flatten(1);
  }));
  all.push_back(nn::layer_of(classifier_, [dropout = dropout_](torch::nn::Linear& linear, const at::Tensor& x) {
    return linear->forward(at::dropout(x, dropout, linear->is_training()));
  }));
  return all;
}

}  // namespace lockstep::models
