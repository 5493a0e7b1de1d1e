#include "lockstep/recipes/unet.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/datasets/drawn/shape_masks.h"
#include "lockstep/datasets/one_image.h"
#include "lockstep/datasets/open_pairs.h"
#include "lockstep/models/resampling.h"
#include "lockstep/models/unet.h"
#include "lockstep/nn/predicted_classes.h"
#include "lockstep/recipes/dice.h"
#include "lockstep/recipes/file_request.h"

namespace lockstep::recipes {
namespace {

// The mean over all pixels. On a GPU libtorch adds up the losses of pixels with atomics, in another order each time,
// unless each is given back.
at::Tensor cross_entropy(const at::Tensor& scores, const at::Tensor& target) {
  if (scores.is_cpu()) return at::cross_entropy_loss(scores, target);
  return at::cross_entropy_loss(scores, target, {}, at::Reduction::None).mean();
}

at::Tensor sigmoid_cross_entropy(const at::Tensor& scores, const at::Tensor& mask) {
  if (scores.is_cpu()) return at::binary_cross_entropy_with_logits(scores, mask);
  return at::binary_cross_entropy_with_logits(scores, mask, {}, {}, at::Reduction::None).mean();
}

// 1 where a pixel is of a class: [N, H, W] -> [N, classes, H, W]. A network of one output has no class 0.
at::Tensor one_hot(const at::Tensor& target, const at::Tensor& output) {
  if (nn::is_sigmoid(output.size(1))) return target.eq(1).unsqueeze(1).to(at::kFloat);
  return at::zeros_like(output, output.options().dtype(at::kFloat)).scatter_(1, target.unsqueeze(1), 1);
}

// The mask that is predicted, as one_hot() has it.
at::Tensor predicted(const at::Tensor& output) { return one_hot(nn::predicted_classes(output, 1), output); }

// The scores of all pixels, which the network computes at half the size: [N, C, H, W] -> [N, classes, H, W], for even
// sides.
at::Tensor at_half_size(models::UNet& net, const at::Tensor& images) {
  return models::upsample_twice(net->forward(at::avg_pool2d(images, 2)), models::Aligned::kEdges);
}

// The same in layers.
std::vector<nn::Layer> layers_at_half_size(const models::UNet& net) {
  std::vector<nn::Layer> layers = net->layers();
  nn::Layer &first = layers.front(), &last = layers.back();
  first.forward = [whole = first.forward](nn::Tensors inputs) {
    inputs.back() = at::avg_pool2d(inputs.back(), 2);
    return whole(std::move(inputs));
  };
  last.forward = [whole = last.forward](nn::Tensors inputs) {
    nn::Tensors outputs = whole(std::move(inputs));
    outputs.back() = models::upsample_twice(outputs.back(), models::Aligned::kEdges);
    return outputs;
  };
  return layers;
}

// How many outputs the network has for data of so many classes.
int64_t outputs(const std::optional<int>& asked, int64_t classes) {
  if (!asked) return classes;
  if (*asked >= classes || (*asked == 1 && classes == 2)) return *asked;
  throw ConfigError("--classes ", *asked, ": the masks have ", classes, " values; leave it out, or give ",
                    classes == 2 ? "1, for one output, or 2" : cat(classes), " or more");
}

// The view with this number of an image: flipped, and turned by transposing it, in one of eight ways; and back.
at::Tensor seen_as(const at::Tensor& images, int view) {
  const at::Tensor flipped = (view & 1) != 0 ? images.flip(3) : images;
  const at::Tensor both = (view & 2) != 0 ? flipped.flip(2) : flipped;
  return (view & 4) != 0 ? both.transpose(2, 3) : both;
}

at::Tensor seen_back(const at::Tensor& scores, int view) {
  const at::Tensor turned = (view & 4) != 0 ? scores.transpose(2, 3) : scores;
  const at::Tensor back = (view & 2) != 0 ? turned.flip(2) : turned;
  return (view & 1) != 0 ? back.flip(3) : back;
}

// Scores whose probabilities are the mean over the views' (test-time augmentation). They are log-probabilities of
// several classes, and the log-odds of one.
at::Tensor mean_over_views(int views, const at::Tensor& images,
                           const std::function<at::Tensor(const at::Tensor&)>& scores_of) {
  at::Tensor sum;
  for (int view = 0; view < views; ++view) {
    const at::Tensor scores = scores_of(seen_as(images, view)).to(at::kFloat);
    const at::Tensor found = nn::is_sigmoid(scores.size(1)) ? scores.sigmoid() : scores.softmax(1);
    const at::Tensor back = seen_back(found, view);
    sum = view == 0 ? back.clone() : sum.add_(back);
  }
  const at::Tensor mean = sum.div_(views);
  return nn::is_sigmoid(mean.size(1)) ? mean.logit(1e-7) : mean.clamp_min(1e-12).log();
}

}  // namespace

train::Defaults UNet::defaults() const {
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
  datasets::OpenOptions opened = file_request(request, options_.images, size);
  opened.scale = options_.scale;
  opened.crop = options_.crop;
  opened.classes = options_.classes;
  opened.channels = options_.channels;
  return datasets::open_pairs(opened);
}

train::OpenInput UNet::input_opener(const train::InputRequest& request) const {
  constexpr int64_t kMostChannels = 4;
  if (request.channels > kMostChannels) {
    throw ConfigError("predict: the network has ", request.channels, " input channels, and images are read with 1 ",
                      "(grey) or 3, and transparency");
  }
  datasets::OpenOptions options = input_request(request, options_.images, options_.side(""));
  options.scale = options_.scale;
  options.channels = options_.channels;
  return [options, channels = static_cast<int>(request.channels)](const std::string& file) {
    return datasets::one_image(file, datasets::whole_image_setup(file, options, channels));
  };
}

train::Model UNet::make_model(uint64_t seed, const data::Dataset& data) const {
  const models::UNetOptions options{.in_channels = data.sample_shape()[0],
                                    .classes = outputs(options_.classes, data.classes()),
                                    .width = options_.width,
                                    .bilinear = options_.bilinear};
  models::UNet net(options, seed);
  return {.module = net.ptr(),
          .forward =
              [net, half = options_.half_size, views = options_.views](const data::Batch& batch) mutable {
                const auto scores_of = [&](const at::Tensor& images) {
                  return half ? at_half_size(net, images) : net->forward(images);
                };
                if (views == 1 || net->is_training()) return scores_of(batch.data());
                return mean_over_views(views, batch.data(), scores_of);
              },
          .layers = [net, half = options_.half_size] { return half ? layers_at_half_size(net) : net->layers(); },
          .text = cat(options.in_channels, options.in_channels == 1 ? " input channel, " : " input channels, ",
                      options.classes, options.classes == 1 ? " output" : " classes", ", up-sampling ",
                      options.bilinear ? "bilinear" : "by transposed convolutions")};
}

at::Tensor UNet::loss(const at::Tensor& output, const data::Batch& batch) const {
  const at::Tensor scores = output.to(at::kFloat), mask = one_hot(batch.target(), scores);
  const bool single = nn::is_sigmoid(scores.size(1));
  const at::Tensor probabilities = single ? scores.sigmoid() : scores.softmax(1);
  const at::Tensor entropy = single ? sigmoid_cross_entropy(scores, mask) : cross_entropy(scores, batch.target());
  if (options_.dice_weight == 0) return entropy;
  const at::Tensor overlap = joint_dice() ? joint_dice_loss(probabilities, mask) : dice_loss(probabilities, mask);
  return entropy + options_.dice_weight * overlap;
}

std::vector<double> UNet::measure(const at::Tensor& output, const data::Batch& batch) const {
  const at::Tensor mask = one_hot(batch.target(), output);
  return joint_dice() ? dice_of_images(predicted(output), mask) : dice_counts(predicted(output), mask);
}

nlohmann::ordered_json UNet::metrics(const std::vector<double>& sums, int64_t samples) const {
  std::vector<double> dice;
  const size_t numbers = joint_dice() ? 1 : 2;  // of each class
  for (size_t label = 0; label < sums.size() / numbers; ++label) {
    if (joint_dice()) {
      dice.push_back(sums[label] / static_cast<double>(std::max<int64_t>(1, samples)));
    } else {
      const double both = sums[2 * label], either = sums[2 * label + 1];
      dice.push_back(either > 0 ? both / either : 1);  // a class that is nowhere was found everywhere
    }
  }
  const auto first = dice.begin() + (dice.size() > 1 ? 1 : 0);  // of one class alone there is no background
  const double mean = std::accumulate(first, dice.end(), 0.0) / static_cast<double>(dice.end() - first);
  return {{"dice", mean}, {"dice_per_class", dice}};
}

}  // namespace lockstep::recipes
