#include "lockstep/models/alexnet.h"

#include <ATen/ATen.h>

#include <string>

#include "lockstep/base/error.h"
#include "lockstep/models/init.h"
#include "lockstep/models/layers.h"
#include "lockstep/models/resampling.h"

namespace lockstep::models {
namespace {

constexpr const char* kName = "AlexNet";
constexpr int64_t kColors = 3;
constexpr int64_t kPooled = 6;  // pixels a side that the classifier sees
constexpr int64_t kHidden = 4096;

struct Convolution {
  int number;  // in "features", where ReLUs and poolings count
  int64_t out, kernel, stride, padding;
  bool pooled;  // by 3×3 with stride 2
};
constexpr Convolution kLayers[] = {{0, 64, 11, 4, 2, true},
                                   {3, 192, 5, 1, 2, true},
                                   {6, 384, 3, 1, 1, false},
                                   {8, 256, 3, 1, 1, false},
                                   {10, 256, 3, 1, 1, true}};

}  // namespace

AlexNetImpl::AlexNetImpl(const AlexNetOptions& options, uint64_t seed) : dropout_(options.dropout) {
  if (!(dropout_ >= 0 && dropout_ < 1)) throw ConfigError(kName, ": dropout is ", dropout_, ", not within [0, 1)");
  const int64_t classes = checked_option(kName, "classes", options.classes, kMaxClasses);
  const auto features = nn::add_level(*this, "features");
  int64_t in = kColors;
  for (const Convolution& layer : kLayers) {
    const auto chosen =
        torch::nn::Conv2dOptions(in, layer.out, layer.kernel).stride(layer.stride).padding(layer.padding);
    convolutions_.push_back(features->register_module(std::to_string(layer.number), torch::nn::Conv2d(chosen)));
    in = layer.out;
  }
  const auto classifier = nn::add_level(*this, "classifier");
  const auto add = [&](const char* name, int64_t from, int64_t to) {
    classifier_.push_back(classifier->register_module(name, torch::nn::Linear(from, to)));
  };
  add("1", in * kPooled * kPooled, kHidden);
  add("4", kHidden, kHidden);
  add("6", kHidden, classes);
  draw_as_torch(*this, seed);
}

at::Tensor AlexNetImpl::forward(const at::Tensor& images) { return nn::run(layers(), images); }

std::vector<nn::Layer> AlexNetImpl::layers() const {
  std::vector<nn::Layer> all;
  for (size_t i = 0; i < convolutions_.size(); ++i) {
    all.push_back(nn::layer_of(convolutions_[i], [i](torch::nn::Conv2d& conv, const at::Tensor& x) {
      if (i == 0) check_images(kName, x, kColors, kLeastSide);
      const at::Tensor y = conv->forward(x).relu();
      return kLayers[i].pooled ? at::max_pool2d(y, {3, 3}, {2, 2}) : y;
    }));
  }
  for (size_t i = 0; i < classifier_.size(); ++i) {
    all.push_back(nn::layer_of(classifier_[i], [i, dropout = dropout_](torch::nn::Linear& linear, at::Tensor x) {
      // Of images of 224 pixels the sides are that already.
      if (i == 0 && (x.size(2) != kPooled || x.size(3) != kPooled)) x = average_pool_to(x, kPooled);
      if (i == 2) return linear->forward(x);
      return linear->forward(at::dropout(x.flatten(1), dropout, linear->is_training())).relu();
    }));
  }
  return all;
}

}  // namespace lockstep::models
