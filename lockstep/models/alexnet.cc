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

struct Layer {
  int number;  // in "features", where ReLUs and poolings count
  int64_t out, kernel, stride, padding;
  bool pooled;  // by 3×3 with stride 2
};
constexpr Layer kLayers[] = {{0, 64, 11, 4, 2, true},
                             {3, 192, 5, 1, 2, true},
                             {6, 384, 3, 1, 1, false},
                             {8, 256, 3, 1, 1, false},
                             {10, 256, 3, 1, 1, true}};

}  // namespace

AlexNetImpl::AlexNetImpl(const AlexNetOptions& options, uint64_t seed) : dropout_(options.dropout) {
  if (!(dropout_ >= 0 && dropout_ < 1)) throw ConfigError(kName, ": dropout is ", dropout_, ", not within [0, 1)");
  const int64_t classes = checked_option(kName, "classes", options.classes, kMaxClasses);
  const auto features = add_level(*this, "features");
  int64_t in = kColors;
  for (const Layer& layer : kLayers) {
    const auto chosen =
        torch::nn::Conv2dOptions(in, layer.out, layer.kernel).stride(layer.stride).padding(layer.padding);
    convolutions_.push_back(features->register_module(std::to_string(layer.number), torch::nn::Conv2d(chosen)));
    in = layer.out;
  }
  const auto classifier = add_level(*this, "classifier");
  const auto add = [&](const char* name, int64_t from, int64_t to) {
    classifier_.push_back(classifier->register_module(name, torch::nn::Linear(from, to)));
  };
  add("1", in * kPooled * kPooled, kHidden);
  add("4", kHidden, kHidden);
  add("6", kHidden, classes);
  draw_as_torch(*this, seed);
}

at::Tensor AlexNetImpl::forward(const at::Tensor& images) {
  check_images(kName, images, kColors, kLeastSide);
  at::Tensor x = images;
  for (size_t i = 0; i < convolutions_.size(); ++i) {
    x = convolutions_[i]->forward(x).relu();
    if (kLayers[i].pooled) x = at::max_pool2d(x, {3, 3}, {2, 2});
  }
  // Of images of 224 pixels the sides are that already.
  if (x.size(2) != kPooled || x.size(3) != kPooled) x = average_pool_to(x, kPooled);
  x = classifier_[0]->forward(at::dropout(x.flatten(1), dropout_, is_training())).relu();
  x = classifier_[1]->forward(at::dropout(x, dropout_, is_training())).relu();
  return classifier_[2]->forward(x);
}

}  // namespace lockstep::models
