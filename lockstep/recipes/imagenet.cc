#include "lockstep/recipes/imagenet.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/gather.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/data/mix.h"
#include "lockstep/datasets/augment.h"
#include "lockstep/datasets/cifar.h"
#include "lockstep/datasets/drawn/textured_shapes.h"
#include "lockstep/datasets/files/kind.h"
#include "lockstep/datasets/one_image.h"
#include "lockstep/datasets/open_images.h"
#include "lockstep/datasets/packed/manifest.h"
#include "lockstep/models/alexnet.h"
#include "lockstep/models/igcv3.h"
#include "lockstep/models/mobilenet_v2.h"
#include "lockstep/models/resnet.h"
#include "lockstep/models/shufflenet_v2.h"
#include "lockstep/recipes/file_request.h"

namespace lockstep::recipes {
namespace {

template <typename Net, typename Options>
train::Model model_of(int64_t classes, uint64_t seed) {
  Net net(Options{.classes = classes}, seed);
  return {.module = net.ptr(),
          .forward = [net](const data::Batch& batch) mutable { return net->forward(batch.data()); },
          .layers = [net] { return net->layers(); }};
}

// Of a run on packed data, which its record says no more of than that they were packed.
datasets::Packed packed_kind_of(const train::InputRequest& request) {
  if (!request.data.empty() && datasets::kind_of(request.data) == datasets::Kind::kPacked) {
    return datasets::packed_kind(request.data);
  }
  throw ConfigError(
      "predict: the run was trained on packed data", request.data.empty() ? "" : cat(", ", shown(request.data)),
      ", which are not there to say whether they are photographs or CIFAR's, normalised in a way of their ",
      "own; put them back, or convert the checkpoint to weights alone, which are taken for photographs'");
}

bool is_mobile(Arch arch) { return arch == Arch::kMobilenetV2 || arch == Arch::kShufflenetV2 || arch == Arch::kIgcv3; }

}  // namespace

train::Defaults Imagenet::defaults() const {
  return {.batch_size = 32,
          .epochs = 5,
          // 0.1 for 256 samples (Goyal et al., 2017); of a network without BatchNorm a tenth.
          .lr = options_.arch == Arch::kAlexnet ? 0.00125 : 0.0125,
          .optimizer = "sgd",
          .momentum = 0.9,
          .weight_decay = is_mobile(options_.arch) ? 4e-5 : 1e-4,  // as their papers have it
          .schedule = "cosine",
          .warmup = 100,
          .channels_last = true,
          .eval_batch = 64};
}

data::Splits Imagenet::open_data(const train::DataRequest& request) const {
  const int size = options_.side(request.path);
  if (request.path.empty()) return datasets::textured_shapes({.seed = request.seed, .side = size});
  return datasets::open_images(file_request(request, options_.images, size));
}

// By the run's record: photographs, CIFAR's small images, and drawn ones were normalised differently.
datasets::ImageSetup Imagenet::input_setup(const train::InputRequest& request) const {
  using datasets::Cifar, datasets::Packed;
  const auto& fingerprint = request.fingerprint;
  const Packed packed = fingerprint.starts_with("packed ") ? packed_kind_of(request) : Packed::kImages;
  const datasets::OpenOptions options = input_request(request, options_.images, options_.side(""));
  if (fingerprint.starts_with("CIFAR-10 ") || packed == Packed::kCifar10) {
    return datasets::small_image_setup(options, /*stored=*/{}, datasets::cifar_normalize(Cifar::k10));
  }
  if (fingerprint.starts_with("CIFAR-100 ") || packed == Packed::kCifar100) {
    return datasets::small_image_setup(options, /*stored=*/{}, datasets::cifar_normalize(Cifar::k100));
  }
  datasets::ImageSetup setup = datasets::photograph_setup(options);
  if (request.drawn) setup.normalize = {};
  return setup;
}

train::OpenInput Imagenet::input_opener(const train::InputRequest& request) const {
  return [setup = input_setup(request)](const std::string& file) { return datasets::one_image(file, setup); };
}

train::Model Imagenet::make_model(uint64_t seed, const data::Dataset& data) const {
  switch (options_.arch) {
    case Arch::kResnet18:
      return model_of<models::ResNet18, models::ResNetOptions>(data.classes(), seed);
    case Arch::kResnet34:
      return model_of<models::ResNet34, models::ResNetOptions>(data.classes(), seed);
    case Arch::kResnet50:
      return model_of<models::ResNet50, models::ResNetOptions>(data.classes(), seed);
    case Arch::kResnet101:
      return model_of<models::ResNet101, models::ResNetOptions>(data.classes(), seed);
    case Arch::kResnet152:
      return model_of<models::ResNet152, models::ResNetOptions>(data.classes(), seed);
    case Arch::kMobilenetV2:
      return model_of<models::MobileNetV2, models::MobileNetV2Options>(data.classes(), seed);
    case Arch::kShufflenetV2:
      return model_of<models::ShuffleNetV2, models::ShuffleNetV2Options>(data.classes(), seed);
    case Arch::kAlexnet:
      return model_of<models::AlexNet, models::AlexNetOptions>(data.classes(), seed);
    case Arch::kIgcv3:
      return model_of<models::Igcv3, models::Igcv3Options>(data.classes(), seed);
  }
  throw BugError("imagenet: a network that it does not know");
}

std::shared_ptr<const data::BatchTransform> Imagenet::batch_transform() const {
  const double mixup = options_.mixup.value_or(0), cutmix = options_.cutmix.value_or(0);
  if (mixup == 0 && cutmix == 0) return nullptr;
  return data::mix({.mixup = mixup, .cutmix = cutmix});
}

at::Tensor Imagenet::loss(const at::Tensor& output, const data::Batch& batch) const {
  return at::cross_entropy_loss(output.to(at::kFloat), batch.target(), {}, at::Reduction::Mean, /*ignore_index=*/-100,
                                options_.label_smoothing.value_or(0));
}

std::vector<double> Imagenet::measure(const at::Tensor& output, const data::Batch& batch) const {
  const at::Tensor of_target = output.gather(1, batch.class_target().unsqueeze(1));
  const at::Tensor above = output.le(of_target).logical_not().sum(1);  // a score that is not a number is above all
  const auto within = [&above](int64_t places) { return static_cast<double>(above.lt(places).sum().item<int64_t>()); };
  return {within(1), within(5)};
}

nlohmann::ordered_json Imagenet::metrics(const std::vector<double>& sums, int64_t samples) const {
  const auto count = static_cast<double>(std::max<int64_t>(1, samples));
  return {{"top1", sums[0] / count}, {"top5", sums[1] / count}};
}

}  // namespace lockstep::recipes
