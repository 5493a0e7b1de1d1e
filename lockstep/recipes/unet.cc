#include "lockstep/recipes/unet.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/datasets/drawn/shape_masks.h"
#include "lockstep/datasets/one_image.h"
#include "lockstep/datasets/open_pairs.h"
#include "lockstep/models/unet.h"
#include "lockstep/recipes/file_request.h"

namespace lockstep::recipes {
namespace {

// 1 where a pixel is of a class: [N, H, W] -> like `output` [N, classes, H, W].
at::Tensor one_hot(const at::Tensor& target, const at::Tensor& output) {
  return at::zeros_like(output).scatter_(1, target.unsqueeze(1), 1);
}

// The mean over images and classes of 1 - Dice, with probabilities in place of a prediction (Milletari et al., 2016).
at::Tensor dice_loss(const at::Tensor& output, const at::Tensor& target) {
  const at::Tensor probabilities = output.softmax(1), mask = one_hot(target, output);
  const at::Tensor both = (probabilities * mask).sum({2, 3});
  const at::Tensor either = (probabilities + mask).sum({2, 3});
  return 1 - ((2 * both + 1) / (either + 1)).mean();
}

// The mean over all pixels. On a GPU libtorch adds up the losses of pixels with atomics, in another order each time,
// unless each is given back.
at::Tensor cross_entropy(const at::Tensor& scores, const at::Tensor& target) {
  if (scores.is_cpu()) return at::cross_entropy_loss(scores, target);
  return at::cross_entropy_loss(scores, target, {}, at::Reduction::None).mean();
}

double count(const at::Tensor& pixels) { return static_cast<double>(pixels.sum().item<int64_t>()); }

}  // namespace

train::Defaults UNet::defaults(const std::string& preset) const {
  if (!preset.empty()) throw ConfigError("--preset ", preset, ": unet has no presets");
  return {.batch_size = 8,
          .epochs = 5,
          .lr = 1e-3,
          .optimizer = "adamw",
          .weight_decay = 1e-4,
          .schedule = "cosine",
          .warmup = 50,
          .channels_last = true,
          .eval_batch = 16};
}

data::Splits UNet::open_data(const train::DataRequest& request) const {
  const int size = options_.side(request.path);
  if (request.path.empty()) return datasets::shape_masks({.seed = request.seed, .side = size});
  return datasets::open_pairs(file_request(request, options_.images, size));
}

train::OpenInput UNet::input_opener(const train::InputRequest& request) const {
  if (request.channels != 1 && request.channels != 3) {
    throw ConfigError("predict: the network has ", request.channels, " input channels, and images are read with 1 ",
                      "(grey) or 3");
  }
  const auto options = input_request(request, options_.images, options_.side(""));
  return [options, channels = static_cast<int>(request.channels)](const std::string& file) {
    return datasets::one_image(file, datasets::whole_image_setup(file, options, channels));
  };
}

train::Model UNet::make_model(uint64_t seed, const data::Dataset& data) const {
  const models::UNetOptions options{.in_channels = data.sample_shape()[0],
                                    .classes = data.classes(),
                                    .width = options_.width,
                                    .bilinear = options_.bilinear};
  models::UNet net(options, seed);
  return {.module = net.ptr(),
          .forward = [net](const data::Batch& batch) mutable { return net->forward(batch.data()); }};
}

at::Tensor UNet::loss(const at::Tensor& output, const data::Batch& batch) const {
  const at::Tensor scores = output.to(at::kFloat);
  return cross_entropy(scores, batch.target()) + dice_loss(scores, batch.target());
}

std::vector<double> UNet::measure(const at::Tensor& output, const data::Batch& batch) const {
  const at::Tensor predicted = output.argmax(1);
  std::vector<double> sums;
  for (int64_t label = 0; label < output.size(1); ++label) {
    const at::Tensor here = predicted.eq(label), there = batch.target().eq(label);
    sums.push_back(count(here.logical_and(there)));
    sums.push_back(count(here) + count(there));
  }
  return sums;
}

nlohmann::ordered_json UNet::metrics(const std::vector<double>& sums, int64_t /*samples*/) const {
  std::vector<double> dice;
  double total = 0;
  const size_t classes = sums.size() / 2;
  for (size_t label = 0; label < classes; ++label) {
    const double both = sums[2 * label], either = sums[2 * label + 1];
    dice.push_back(either > 0 ? 2 * both / either : 1);  // a class that is nowhere was found everywhere
    if (label > 0) total += dice.back();
  }
  return {{"dice", total / static_cast<double>(std::max<size_t>(2, classes) - 1)}, {"dice_per_class", dice}};
}

}  // namespace lockstep::recipes
