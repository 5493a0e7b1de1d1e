#include "lockstep/models/resnet.h"

#include <ATen/ATen.h>

#include "lockstep/models/init.h"

namespace lockstep::models {
namespace {

using nn::Activation;

constexpr const char* kName = "ResNet18";
constexpr int64_t kColors = 3;
constexpr int64_t kStages[] = {64, 128, 256, 512};  // channels; all but the first begin with stride 2
constexpr int64_t kFeatures = 512;

}  // namespace

BasicBlockImpl::BasicBlockImpl(int64_t in, int64_t out, int64_t stride)
    : conv1_(register_module("conv1", convolution(in, out, 3, stride))),
      bn1_(register_module("bn1", nn::BatchNorm2d(out))),
      conv2_(register_module("conv2", convolution(out, out, 3))),
      bn2_(register_module("bn2", nn::BatchNorm2d(out))) {
  if (stride != 1 || in != out) downsample_ = register_module("downsample", ConvNorm(in, out, 1, stride));
}

at::Tensor BasicBlockImpl::forward(const at::Tensor& x) {
  const at::Tensor around = downsample_ ? downsample_->forward(x, Activation::kNone) : x;
  const at::Tensor inner = bn1_->forward(conv1_->forward(x), Activation::kRelu);
  return bn2_->forward(conv2_->forward(inner), Activation::kRelu, around);
}

ResNet18Impl::ResNet18Impl(const ResNetOptions& options, uint64_t seed)
    : conv1_(register_module("conv1", convolution(kColors, kStages[0], 7, 2))),
      bn1_(register_module("bn1", nn::BatchNorm2d(kStages[0]))) {
  int64_t in = kStages[0];
  int number = 1;
  for (const int64_t out : kStages) {
    const auto layer = add_level(*this, "layer" + std::to_string(number++));
    blocks_.push_back(layer->register_module("0", BasicBlock(in, out, in == out ? 1 : 2)));
    blocks_.push_back(layer->register_module("1", BasicBlock(out, out, 1)));
    in = out;
  }
  const int64_t classes = checked_option(kName, "classes", options.classes, kMaxClasses);
  fc_ = register_module("fc", torch::nn::Linear(kFeatures, classes));

  uint64_t parameter = 0;
  for (const at::Tensor& p : parameters()) {
    const RandomStream stream = init_stream(seed, parameter++);
    if (p.dim() == 4) kaiming_normal_(p, stream, Fan::kOut);
    if (p.is_same(fc_->weight) || p.is_same(fc_->bias)) uniform_(p, default_bound(fc_->weight), stream);
  }
}

at::Tensor ResNet18Impl::forward(const at::Tensor& images) {
  check_images(kName, images, kColors);
  at::Tensor x = bn1_->forward(conv1_->forward(images), Activation::kRelu);
  x = at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
  for (BasicBlock& block : blocks_) x = block->forward(x);
  return fc_->forward(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
}

}  // namespace lockstep::models
