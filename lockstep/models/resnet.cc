#include "lockstep/models/resnet.h"

#include <ATen/ATen.h>

#include <string>

#include "lockstep/models/init.h"

namespace lockstep::models {
namespace {

using nn::Activation;

constexpr int64_t kColors = 3;
constexpr int64_t kStem = 64;                       // channels
constexpr int64_t kWidths[] = {64, 128, 256, 512};  // of the layers; all but the first begin with stride 2

}  // namespace

void ResidualBlock::add_downsample(int64_t in, int64_t out, int64_t stride) {
  if (stride != 1 || in != out) downsample_ = register_module("downsample", ConvNorm(in, out, 1, stride));
}

at::Tensor ResidualBlock::shortcut(const at::Tensor& x) {
  return downsample_ ? downsample_->forward(x, Activation::kNone) : x;
}

BasicBlock::BasicBlock(int64_t in, int64_t width, int64_t stride)
    : conv1_(register_module("conv1", convolution(in, width, 3, stride))),
      bn1_(register_module("bn1", nn::BatchNorm2d(width))),
      conv2_(register_module("conv2", convolution(width, width, 3))),
      bn2_(register_module("bn2", nn::BatchNorm2d(width))) {
  add_downsample(in, width, stride);
}

at::Tensor BasicBlock::forward(const at::Tensor& x) {
  const at::Tensor around = shortcut(x);
  const at::Tensor inner = bn1_->forward(conv1_->forward(x), Activation::kRelu);
  return bn2_->forward(conv2_->forward(inner), Activation::kRelu, around);
}

Bottleneck::Bottleneck(int64_t in, int64_t width, int64_t stride)
    : conv1_(register_module("conv1", convolution(in, width, 1))),
      bn1_(register_module("bn1", nn::BatchNorm2d(width))),
      conv2_(register_module("conv2", convolution(width, width, 3, stride))),
      bn2_(register_module("bn2", nn::BatchNorm2d(width))),
      conv3_(register_module("conv3", convolution(width, width * kExpansion, 1))),
      bn3_(register_module("bn3", nn::BatchNorm2d(width * kExpansion))) {
  add_downsample(in, width * kExpansion, stride);
}

at::Tensor Bottleneck::forward(const at::Tensor& x) {
  const at::Tensor around = shortcut(x);
  at::Tensor inner = bn1_->forward(conv1_->forward(x), Activation::kRelu);
  inner = bn2_->forward(conv2_->forward(inner), Activation::kRelu);
  return bn3_->forward(conv3_->forward(inner), Activation::kRelu, around);
}

ResNetImpl::ResNetImpl(const Form& form, const ResNetOptions& options, uint64_t seed)
    : name_(form.name),
      conv1_(register_module("conv1", convolution(kColors, kStem, 7, 2))),
      bn1_(register_module("bn1", nn::BatchNorm2d(kStem))) {
  const int64_t classes = checked_option(name_, "classes", options.classes, kMaxClasses);
  const int64_t features = form.bottleneck ? add_blocks<Bottleneck>(form.blocks) : add_blocks<BasicBlock>(form.blocks);
  fc_ = register_module("fc", torch::nn::Linear(features, classes));
  draw_weights(seed);
}

// Returns the channels of the last block.
template <typename Block>
int64_t ResNetImpl::add_blocks(const std::array<int, 4>& blocks) {
  int64_t in = kStem;
  for (size_t layer = 0; layer < blocks.size(); ++layer) {
    const auto level = nn::add_level(*this, "layer" + std::to_string(layer + 1));
    for (int block = 0; block < blocks[layer]; ++block) {
      const int64_t stride = layer > 0 && block == 0 ? 2 : 1;
      blocks_.push_back(
          level->register_module(std::to_string(block), std::make_shared<Block>(in, kWidths[layer], stride)));
      in = kWidths[layer] * Block::kExpansion;
    }
  }
  return in;
}

void ResNetImpl::draw_weights(uint64_t seed) {
  uint64_t parameter = 0;
  for (const at::Tensor& p : parameters()) {
    const RandomStream stream = init_stream(seed, parameter++);
    if (p.dim() == 4) kaiming_normal_(p, stream, Fan::kOut);
    if (p.is_same(fc_->weight) || p.is_same(fc_->bias)) uniform_(p, default_bound(fc_->weight), stream);
  }
}

at::Tensor ResNetImpl::forward(const at::Tensor& images) { return nn::run(layers(), images); }

std::vector<nn::Layer> ResNetImpl::layers() const {
  std::vector<nn::Layer> all;
  const auto stem = [name = name_, bn = bn1_](nn::Conv2d& conv, const at::Tensor& images) mutable {
    check_images(name, images, kColors);
    return at::max_pool2d(bn->forward(conv->forward(images), Activation::kRelu), {3, 3}, {2, 2}, {1, 1});
  };
  all.push_back(nn::layer_of(conv1_, stem));
  all.back().modules.push_back(bn1_.ptr());
  for (const auto& block : blocks_) {
    all.push_back(
        nn::layer_of(block, [](std::shared_ptr<ResidualBlock>& own, const at::Tensor& x) { return own->forward(x); }));
  }
  all.push_back(nn::layer_of(fc_, [](torch::nn::Linear& fc, const at::Tensor& x) {
    return fc->forward(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }));
  return all;
}

}  // namespace lockstep::models
