// A folder of one's own images, a folder in it for each class, trained on through transforms of one's own choice. The
// global batch is cut into four lanes, and each image's random numbers are its own, so 1, 2 and 4 processes print the
// same losses and weights, to the last bit.
//
//   lockstep launch --nproc 2 example_images DIR [STEPS]      (or torchrun, mpirun, srun)
#include <ATen/ops/cross_entropy_loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>
#include <torch/utils.h>

#include <cstdio>
#include <cstdlib>

#include "lockstep/base/run_main.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/datasets/class_folders.h"
#include "lockstep/datasets/image_dataset.h"
#include "lockstep/image/colour.h"
#include "lockstep/image/crops.h"
#include "lockstep/image/flips.h"
#include "lockstep/loop/evaluate.h"
#include "lockstep/loop/make_loader.h"
#include "lockstep/optim/rules/adam.h"

using namespace lockstep;

// The images of DIR/cats/1.jpg, DIR/dogs/1.jpg and so on, as 48 x 48 pixels in three channels.
std::shared_ptr<const data::Dataset> open_images(const std::string& folder) {
  using Transforms = std::vector<std::shared_ptr<const image::Transform>>;
  constexpr image::Size kSize{48, 48};
  const Transforms train = {image::random_resized_crop(kSize, {.scale_low = 0.5}), image::flip_x(),
                            image::colour_jitter({.brightness = 0.2, .contrast = 0.2})};
  const Transforms evaluation = {image::resize_shorter(56), image::center_crop(kSize)};
  const datasets::ImageSetup setup{.train = std::make_shared<image::Pipeline>(train),
                                   .evaluation = std::make_shared<image::Pipeline>(evaluation),
                                   .augment = "crop, flip and jitter",
                                   .result = kSize,
                                   .normalize = {.mean = {0.5f, 0.5f, 0.5f}, .std = {0.25f, 0.25f, 0.25f}}};
  return datasets::image_dataset(datasets::class_folders(folder), setup, /*augmented=*/true);
}

torch::nn::Sequential make_net(int64_t classes) {
  namespace nn = torch::nn;
  const auto conv = [](int64_t in, int64_t out) { return nn::Conv2dOptions(in, out, 3).stride(2).padding(1); };
  return nn::Sequential(nn::Conv2d(conv(3, 16)), nn::BatchNorm2d(16), nn::ReLU(), nn::Conv2d(conv(16, 32)),
                        nn::BatchNorm2d(32), nn::ReLU(), nn::AdaptiveAvgPool2d(1), nn::Flatten(),
                        nn::Linear(32, classes));
}

int train(const std::string& folder, int64_t steps) {
  const auto world = init();
  const bool leads = world->rank() == 0;
  torch::manual_seed(1);

  const auto images = open_images(folder);
  if (leads) std::printf("%s\n", images->description().c_str());
  auto net = make_net(images->classes());
  optim::AdamW optimizer(net->parameters(), {.lr = 0.005});
  parallel::DistributedDataParallel ddp(net.ptr(), world);

  // Four lanes of 4 images, decoded by threads of each rank while it computes.
  data::Loader loader = loop::make_loader(*world, images, {.lanes = 4, .batch_size = 4, .seed = 1, .drop_last = true});
  double sum = 0;
  for (int64_t step = 1; step <= steps; ++step) {
    const auto batch = loader.next();
    const auto result = ddp.run(step, batch, [&](const data::LaneBatch& lane) {
      return at::cross_entropy_loss(net->forward(lane.data()), lane.target());
    });
    optimizer.step();
    optimizer.zero_grad();
    sum += result.loss;
    if (step % 10 != 0) continue;
    if (leads) std::printf("step %ld: loss %.9g\n", static_cast<long>(step), sum / 10);
    sum = 0;
  }

  const auto found = loop::evaluate(ddp, *images->for_evaluation(), [&](const data::Batch& some) -> loop::Sums {
    return {{"correct", net->forward(some.data()).argmax(1).eq(some.target()).sum().item<double>()}};
  });
  if (leads) {
    std::printf("right %.0f of %ld, weights %s\n", found.sum("correct"), static_cast<long>(found.samples),
                checkpoint::weights_sha256(*net).c_str());
  }
  return 0;
}

int main(int argc, char** argv) {
  return run_main([&] {
    if (argc < 2) throw ConfigError("usage: example_images DIR [STEPS], where DIR has a folder for each class");
    return train(argv[1], argc > 2 ? std::atoll(argv[2]) : 200);
  });
}
