#include "lockstep/models/unet.h"

#include <ATen/ATen.h>

#include "lockstep/models/init.h"
#include "lockstep/models/resampling.h"
#include "lockstep/nn/max_pool_relu.h"

namespace lockstep::models {
namespace {

using nn::Activation;

constexpr const char* kName = "UNet";
constexpr int64_t kMostWidth = 1024;
constexpr int kLevels = 4;
constexpr int64_t kSmallest = 1 << kLevels;

torch::nn::ConvTranspose2d doubling(int64_t in) {
  return torch::nn::ConvTranspose2d(torch::nn::ConvTranspose2dOptions(in, in / 2, 2).stride(2));
}

// Pads x with zeros to the height and width of `other`; an odd row or column goes below or to the right.
at::Tensor padded_as(const at::Tensor& other, const at::Tensor& x) {
  const int64_t rows = other.size(2) - x.size(2), columns = other.size(3) - x.size(3);
  if (rows == 0 && columns == 0) return x;
  return at::constant_pad_nd(x, {columns / 2, columns - columns / 2, rows / 2, rows - rows / 2});
}

}  // namespace

DoubleConvImpl::DoubleConvImpl(int64_t in, int64_t middle, int64_t out) {
  const auto level = nn::add_level(*this, "double_conv");  // 2 and 5 are the ReLUs
  conv1_ = level->register_module("0", convolution(in, middle, 3));
  norm1_ = level->register_module("1", nn::BatchNorm2d(middle));
  conv2_ = level->register_module("3", convolution(middle, out, 3));
  norm2_ = level->register_module("4", nn::BatchNorm2d(out));
}

at::Tensor DoubleConvImpl::forward(const at::Tensor& x) {
  const at::Tensor middle = norm1_->forward(conv1_->forward(x), Activation::kRelu);
  return norm2_->forward(conv2_->forward(middle), Activation::kRelu);
}

DownImpl::DownImpl(int64_t in, int64_t out) {
  conv_ = nn::add_level(*this, "maxpool_conv")->register_module("1", DoubleConv(in, out, out));
}

// The input has been through a ReLU, and another one doesn't change it.
at::Tensor DownImpl::forward(const at::Tensor& x) { return conv_->forward(nn::max_pool_relu(x)); }

UpImpl::UpImpl(int64_t in, int64_t out, bool bilinear) {
  if (!bilinear) up_ = register_module("up", doubling(in));
  conv_ = register_module("conv", DoubleConv(in, bilinear ? in / 2 : out, out));
}

at::Tensor UpImpl::forward(const at::Tensor& x, const at::Tensor& skip) {
  const at::Tensor doubled = up_ ? up_->forward(x) : upsample_twice(x);
  return conv_->forward(at::cat({skip, padded_as(skip, doubled)}, 1));
}

UNetImpl::UNetImpl(const UNetOptions& options, uint64_t seed)
    : in_channels_(checked_option(kName, "in_channels", options.in_channels, kMaxChannels)) {
  const int64_t classes = checked_option(kName, "classes", options.classes, kMaxClasses);
  const int64_t width = checked_option(kName, "width", options.width, kMostWidth);
  inc_ = register_module("inc", DoubleConv(in_channels_, width, width));
  // Bilinear upsampling keeps the channels, so what is to be upsampled has as many as its skip.
  const int64_t kept = options.bilinear ? 2 : 1;
  int64_t channels = width;
  for (int level = 1; level <= kLevels; ++level, channels *= 2) {
    const int64_t out = 2 * channels / (level == kLevels ? kept : 1);
    downs_.push_back(register_module("down" + std::to_string(level), Down(channels, out)));
  }
  for (int level = 1; level <= kLevels; ++level, channels /= 2) {
    const int64_t out = channels / 2 / (level == kLevels ? 1 : kept);
    ups_.push_back(register_module("up" + std::to_string(level), Up(channels, out, options.bilinear)));
  }
  const auto last = torch::nn::Conv2dOptions(width, classes, 1);
  outc_ = nn::add_level(*this, "outc")->register_module("conv", torch::nn::Conv2d(last));

  draw_as_torch(*this, seed);
}

at::Tensor UNetImpl::forward(const at::Tensor& images) { return nn::run(layers(), images); }

// Each way down adds its output to the tensors, behind the skips, and each way up takes two of them for one.
std::vector<nn::Layer> UNetImpl::layers() const {
  std::vector<nn::Layer> all;
  all.push_back(nn::layer_of(inc_, [channels = in_channels_](DoubleConv& conv, const at::Tensor& images) {
    check_images(kName, images, channels, kSmallest);
    return conv->forward(images);
  }));
  for (Down down : downs_) {
    all.push_back({.modules = {down.ptr()}, .forward = [down](nn::Tensors tensors) mutable {
                     tensors.push_back(down->forward(tensors.back()));
                     return tensors;
                   }});
  }
  for (Up up : ups_) {
    all.push_back({.modules = {up.ptr()}, .forward = [up](nn::Tensors tensors) mutable {
                     const at::Tensor x = std::move(tensors.back());
                     tensors.pop_back();
                     tensors.back() = up->forward(x, tensors.back());
                     return tensors;
                   }});
  }
  all.push_back(nn::layer_of(outc_, [](torch::nn::Conv2d& conv, const at::Tensor& x) { return conv->forward(x); }));
  return all;
}

}  // namespace lockstep::models
