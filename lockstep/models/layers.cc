#include "lockstep/models/layers.h"

#include <ATen/ATen.h>

#include "lockstep/base/error.h"

namespace lockstep::models {

int64_t checked_option(const char* model, const char* what, int64_t value, int64_t most) {
  if (value < 1 || value > most) throw ConfigError(model, ": ", what, " is ", value, ", not within 1 to ", most);
  return value;
}

void check_images(const char* model, const at::Tensor& images, int64_t channels, int64_t side) {
  if (images.dim() == 4 && images.size(1) == channels && images.size(2) >= side && images.size(3) >= side) return;
  throw DataError(model, " takes images of [N, ", channels, ", H, W] with H and W at least ", side, ", not ",
                  images.sizes());
}

nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups) {
  return nn::Conv2d(
      torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).groups(groups).bias(false));
}

// One copy either way. flatten() makes it in the order of the dimensions that it is given.
at::Tensor shuffle_channels(const at::Tensor& x, int64_t groups) {
  const int64_t channels = x.size(1);
  if (channels % groups != 0) throw BugError(channels, " channels are not of ", groups, " groups");
  if (x.suggest_memory_format() != at::MemoryFormat::ChannelsLast) {
    return x.unflatten(1, {groups, channels / groups}).transpose(1, 2).flatten(1, 2);
  }
  const at::Tensor last = x.permute({0, 2, 3, 1}).unflatten(3, {groups, channels / groups});
  return last.transpose(3, 4).flatten(3).permute({0, 3, 1, 2});
}

ConvNormImpl::ConvNormImpl(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups)
    : conv_(register_module("0", convolution(in, out, kernel, stride, groups))),
      norm_(register_module("1", nn::BatchNorm2d(out))) {}

at::Tensor ConvNormImpl::forward(const at::Tensor& x, nn::Activation activation, const at::Tensor& residual) {
  return norm_->forward(conv_->forward(x), activation, residual);
}

}  // namespace lockstep::models
