// A GAN on digits: two networks with BatchNorm, one of which takes part in the other's steps. The global batch is cut
// into four lanes, so 1, 2 and 4 processes end with the same weights, to the last bit.
//
//   lockstep launch --nproc 2 example_gan [STEPS]      (or torchrun, mpirun, srun)
#include <ATen/Parallel.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/utils.h>

#include <cstdio>
#include <cstdlib>

#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/data/loader.h"
#include "lockstep/datasets/drawn/synthetic_digits.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/world/world.h"

namespace data = lockstep::data;
namespace datasets = lockstep::datasets;
namespace nn = torch::nn;
namespace parallel = lockstep::parallel;
using at::Tensor;

constexpr int kLanes = 4;
constexpr int64_t kNoise = 32;

struct Generator : nn::Module {
  nn::Sequential net{nn::Linear(kNoise, 128), nn::BatchNorm1d(128), nn::ReLU(), nn::Linear(128, 28 * 28), nn::Tanh()};
  Generator() { register_module("net", net); }
  Tensor forward(const Tensor& noise) { return net->forward(noise).view({-1, 1, 28, 28}); }
};

struct Discriminator : nn::Module {
  nn::Sequential net{nn::Conv2d(nn::Conv2dOptions(1, 16, 4).stride(2)),  nn::BatchNorm2d(16), nn::LeakyReLU(),
                     nn::Conv2d(nn::Conv2dOptions(16, 32, 4).stride(2)), nn::BatchNorm2d(32), nn::LeakyReLU()};
  nn::Linear fc{32 * 5 * 5, 1};
  Discriminator() {
    register_module("net", net);
    register_module("fc", fc);
  }
  Tensor forward(const Tensor& x) { return fc->forward(net->forward(x).flatten(1)); }
};

// How far the discriminator is from saying `real`, 1 or 0, of all of these.
Tensor loss_of(const Tensor& logits, double real) {
  return at::binary_cross_entropy_with_logits(logits, at::full_like(logits, real));
}

int main(int argc, char** argv) {
  const int64_t steps = argc > 1 ? std::atoll(argv[1]) : 200;
  at::set_num_threads(1);
  const auto world = lockstep::init();
  torch::manual_seed(1);

  const auto generator = std::make_shared<Generator>();
  const auto discriminator = std::make_shared<Discriminator>();
  torch::optim::Adam to_fool(generator->parameters(), torch::optim::AdamOptions(1e-3).betas({0.5, 0.999}));
  torch::optim::Adam to_tell(discriminator->parameters(), torch::optim::AdamOptions(1e-3).betas({0.5, 0.999}));
  parallel::DistributedDataParallel g(generator, world), d(discriminator, world);

  const data::Splits digits = datasets::synthetic_digits({.seed = 1});
  const data::LaneSampler sampler(
      {.dataset_size = digits.train->size(), .lanes = kLanes, .batch_size = 64 / kLanes, .seed = 1});
  const auto own = world->own_lanes(kLanes);
  data::Loader loader(digits.train, sampler, {.first_lane = own.first, .last_lane = own.last});

  for (int64_t step = 0; step < steps; ++step) {
    const data::StepBatch batch = loader.next();
    to_tell.zero_grad();
    const auto telling = d.run(step, batch, [&](const data::LaneBatch& lane) {
      const Tensor fake = generator->forward(at::randn({lane.size(), kNoise})).detach();
      return loss_of(discriminator->forward(lane.data()), 1) + loss_of(discriminator->forward(fake), 0);
    });
    to_tell.step();
    to_fool.zero_grad();
    const auto fooling = g.run(step, batch, [&](const data::LaneBatch& lane) {
      return loss_of(discriminator->forward(generator->forward(at::randn({lane.size(), kNoise}))), 1);
    });
    to_fool.step();
    if (step % 10 == 9 && world->rank() == 0) {
      std::printf("step %ld: loss %.9g and %.9g\n", static_cast<long>(step + 1), telling.loss.item(),
                  fooling.loss.item());
    }
  }
  if (world->rank() == 0) {
    std::printf("weights %s %s\n", lockstep::checkpoint::weights_sha256(*generator).c_str(),
                lockstep::checkpoint::weights_sha256(*discriminator).c_str());
  }
}
