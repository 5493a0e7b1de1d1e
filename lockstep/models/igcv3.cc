#include "lockstep/models/igcv3.h"

#include <ATen/ATen.h>

#include <string>

#include "lockstep/models/init.h"

namespace lockstep::models {
namespace {

using nn::Activation;

constexpr const char* kName = "IGCV3";
constexpr int64_t kColors = 3;
constexpr int64_t kFirst = 32;
constexpr int64_t kFeatures = 1280;
constexpr int64_t kGroups = 2;

// Twice as many blocks as MobileNetV2's where a stage has several.
struct Blocks {
  int64_t expand, channels, blocks, stride;  // the stride is the first block's
};
constexpr Blocks kBlocks[] = {{1, 16, 1, 1}, {6, 24, 4, 2},  {6, 32, 6, 2}, {6, 64, 8, 2},
                              {6, 96, 6, 1}, {6, 160, 6, 2}, {6, 320, 1, 1}};

}  // namespace

InterleavedBlockImpl::InterleavedBlockImpl(int64_t in, int64_t out, int64_t stride, int64_t expand)
    : adds_input_(stride == 1 && in == out) {
  const int64_t hidden = in * expand;
  const auto conv = nn::add_level(*this, "conv");
  expand_ = conv->register_module("0", ConvNorm(in, hidden, 1, 1, kGroups));
  depthwise_ = conv->register_module("1", ConvNorm(hidden, hidden, 3, stride, hidden));
  project_ = conv->register_module("2", ConvNorm(hidden, out, 1, 1, kGroups));
}

at::Tensor InterleavedBlockImpl::forward(const at::Tensor& x) {
  at::Tensor inner = shuffle_channels(expand_->forward(x, Activation::kNone), kGroups);
  inner = project_->forward(depthwise_->forward(inner, Activation::kRelu6), Activation::kNone);
  inner = shuffle_channels(inner, inner.size(1) / kGroups);
  return adds_input_ ? x + inner : inner;
}

Igcv3Impl::Igcv3Impl(const Igcv3Options& options, uint64_t seed) {
  const int64_t classes = checked_option(kName, "classes", options.classes, kMaxClasses);
  const auto features = nn::add_level(*this, "features");
  int number = 0;
  const auto add = [&](auto module) { return features->register_module(std::to_string(number++), module); };
  first_ = add(ConvNorm(kColors, kFirst, 3, 2));
  int64_t in = kFirst;
  for (const Blocks& group : kBlocks) {
    for (int64_t block = 0; block < group.blocks; ++block) {
      blocks_.push_back(add(InterleavedBlock(in, group.channels, block == 0 ? group.stride : 1, group.expand)));
      in = group.channels;
    }
  }
  last_ = add(ConvNorm(in, kFeatures, 1));
  classifier_ = register_module("classifier", torch::nn::Linear(kFeatures, classes));

  uint64_t parameter = 0;
  for (const at::Tensor& p : parameters()) {
    const RandomStream stream = init_stream(seed, parameter++);
    if (p.dim() > 1) kaiming_normal_(p, stream, Fan::kIn);
  }
  const at::NoGradGuard no_grad;
  classifier_->bias.zero_();
}

at::Tensor Igcv3Impl::forward(const at::Tensor& images) { return nn::run(layers(), images); }

std::vector<nn::Layer> Igcv3Impl::layers() const {
  std::vector<nn::Layer> all;
  all.push_back(nn::layer_of(first_, [](ConvNorm& conv, const at::Tensor& images) {
    check_images(kName, images, kColors);
    return conv->forward(images, Activation::kRelu6);
  }));
  for (const InterleavedBlock& block : blocks_) {
    all.push_back(nn::layer_of(block, [](InterleavedBlock& own, const at::Tensor& x) { return own->forward(x); }));
  }
  all.push_back(nn::layer_of(last_, [](ConvNorm& conv, const at::Tensor& x) {
    return at::adaptive_avg_pool2d(conv->forward(x, Activation::kRelu6), {1, 1}).flatten(1);
  }));
  all.push_back(
      nn::layer_of(classifier_, [](torch::nn::Linear& linear, const at::Tensor& x) { return linear->forward(x); }));
  return all;
}

}  // namespace lockstep::models
