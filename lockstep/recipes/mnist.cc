#include "lockstep/recipes/mnist.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/datasets/drawn/synthetic_digits.h"
#include "lockstep/datasets/mnist.h"
#include "lockstep/datasets/one_image.h"
#include "lockstep/datasets/warped_images.h"
#include "lockstep/models/lenet.h"
#include "lockstep/recipes/file_request.h"

namespace lockstep::recipes {

train::Defaults Mnist::defaults() const {
  return {.batch_size = 32,
          .epochs = 5,
          .lr = 0.05,
          .optimizer = "sgd",
          .momentum = 0.9,
          .weight_decay = 1e-4,
          .schedule = "cosine",
          .warmup = 50,
          .channels_last = true};
}

data::Splits Mnist::open_data(const train::DataRequest& request) const {
  data::Splits splits =
      request.path.empty() ? datasets::synthetic_digits({.seed = request.seed}) : datasets::open_mnist(request.path);
  if (options_.augment == DigitAugment::kStandard) {
    splits.train = datasets::warped(
        splits.train,
        {.degrees = 12, .translate_x = 0.08, .translate_y = 0.08, .scale_low = 0.88, .scale_high = 1.12, .shear = 8});
  }
  return splits;
}

train::OpenInput Mnist::input_opener(const train::InputRequest& request) const {
  constexpr image::Size kDigit{28, 28};
  const auto setup = datasets::grey_image_setup(input_request(request, {}, kDigit.width), kDigit);
  return [setup](const std::string& file) { return datasets::one_image(file, setup); };
}

train::Model Mnist::make_model(uint64_t seed, const data::Dataset& data) const {
  models::LeNet net(models::LeNetOptions{.classes = data.classes()}, seed);
  return {.module = net.ptr(),
          .forward = [net](const data::Batch& batch) mutable { return net->forward(batch.data()); },
          .layers = [net] { return net->layers(); }};
}

at::Tensor Mnist::loss(const at::Tensor& output, const data::Batch& batch) const {
  const at::Tensor scores = output.to(at::kFloat);
  if (options_.loss == DigitLoss::kCrossEntropy) return at::cross_entropy_loss(scores, batch.target());
  const at::Tensor probabilities = scores.softmax(1);
  const at::Tensor sure = at::zeros_like(probabilities).scatter_(1, batch.target().unsqueeze(1), 1);
  return (probabilities - sure).square().sum(1).mean();
}

std::vector<double> Mnist::measure(const at::Tensor& output, const data::Batch& batch) const {
  return {static_cast<double>(output.argmax(1).eq(batch.class_target()).sum().item<int64_t>())};
}

nlohmann::ordered_json Mnist::metrics(const std::vector<double>& sums, int64_t samples) const {
  return {{"accuracy", sums[0] / static_cast<double>(std::max<int64_t>(1, samples))}};
}

}  // namespace lockstep::recipes
