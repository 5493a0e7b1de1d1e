#include "lockstep/models/lenet.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include "lockstep/base/error.h"
#include "lockstep/models/init.h"
#include "lockstep/nn/max_pool_relu.h"

namespace lockstep::models {
namespace {

constexpr int64_t kChannels = 20;
constexpr int64_t kMaxClasses = 1 << 20;
constexpr int64_t kMaxSide = 1 << 14;

torch::nn::Conv2d convolution(int64_t in_channels) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in_channels, kChannels, 5).padding(2));
}

int64_t checked(const char* what, int64_t value, int64_t most) {
  if (value < 1 || value > most) throw ConfigError("LeNet: ", what, " is ", value, ", not within 1 to ", most);
  return value;
}

int64_t features(const LeNetOptions& options) {
  const int64_t side = checked("image_size", options.image_size, kMaxSide);
  if (side % 4 != 0) throw ConfigError("LeNet: image_size is ", side, ", not a multiple of 4: it is halved twice");
  return kChannels * (side / 4) * (side / 4);
}

// Images of one channel are contiguous and channels_last at once, and their strides say contiguous. A convolution
// follows the strides, and would compute a channels_last network in the other format, at half the speed.
at::Tensor in_format_of(const at::Tensor& weight, const at::Tensor& images) {
  const bool channels_last = weight.is_contiguous(at::MemoryFormat::ChannelsLast) && !weight.is_contiguous();
  const bool traced = torch::jit::tracer::isTracing();  // where strides would become numbers
  if (!channels_last || traced || images.size(1) != 1 || !images.is_contiguous()) return images;
  return images.as_strided(images.sizes(), {images.stride(0), 1, images.stride(2), images.stride(3)});
}

}  // namespace

LeNetImpl::LeNetImpl(const LeNetOptions& options, uint64_t seed) : options_(options) {
  conv1_ = register_module("conv1", convolution(checked("in_channels", options.in_channels, kMaxSide)));
  conv2_ = register_module("conv2", convolution(kChannels));
  fc_ = register_module("fc", torch::nn::Linear(features(options), checked("classes", options.classes, kMaxClasses)));

  kaiming_normal_(conv1_->weight, init_stream(seed, 0));
  kaiming_normal_(conv2_->weight, init_stream(seed, 2));
  xavier_uniform_(fc_->weight, init_stream(seed, 4));
  at::NoGradGuard no_grad;
  for (at::Tensor* bias : {&conv1_->bias, &conv2_->bias, &fc_->bias}) bias->zero_();
}

at::Tensor LeNetImpl::forward(const at::Tensor& images) { return nn::run(layers(), images); }

std::vector<nn::Layer> LeNetImpl::layers() const {
  // The stride of conv2's weight says in which format the network computes.
  const auto first = [options = options_, like = conv2_->weight](torch::nn::Conv2d& conv, const at::Tensor& images) {
    const int64_t side = options.image_size;
    if (images.dim() != 4 || images.size(1) != options.in_channels || images.size(2) != side ||
        images.size(3) != side) {
      throw DataError("LeNet takes images of [N, ", options.in_channels, ", ", side, ", ", side, "], not ",
                      images.sizes());
    }
    return nn::max_pool_relu(conv->forward(in_format_of(like, images)));
  };
  return {nn::layer_of(conv1_, first),
          nn::layer_of(
              conv2_, [](torch::nn::Conv2d& conv, const at::Tensor& x) { return nn::max_pool_relu(conv->forward(x)); }),
          nn::layer_of(fc_, [](torch::nn::Linear& fc, const at::Tensor& x) { return fc->forward(x.flatten(1)); })};
}

}  // namespace lockstep::models
