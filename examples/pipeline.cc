// The network of single_process.cc in stages, one on each rank, through which four micro-batches of a step pass. 1, 2
// and 4 processes print the same losses, to the last bit.
//
//   lockstep launch --nproc 2 example_pipeline [STEPS]      (or torchrun, mpirun, srun)
#include "lockstep/parallel/pipeline/pipeline.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>
#include <torch/optim/adam.h>

#include <cstdio>
#include <cstdlib>

#include "lockstep/data/loader.h"
#include "lockstep/datasets/drawn/synthetic_digits.h"
#include "lockstep/world/world.h"

namespace data = lockstep::data;
namespace datasets = lockstep::datasets;
namespace nn = torch::nn;
namespace parallel = lockstep::parallel;

constexpr int kMicroBatches = 4;

int main(int argc, char** argv) {
  const int64_t steps = argc > 1 ? std::atoll(argv[1]) : 200;
  at::set_num_threads(1);
  const auto world = lockstep::init();

  at::manual_seed(1);  // the same network on all ranks
  nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(1, 6, 5).padding(2)), nn::ReLU(), nn::MaxPool2d(2),
                     nn::Conv2d(6, 16, 5), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(400, 120),
                     nn::ReLU(), nn::Linear(120, 84), nn::ReLU(), nn::Linear(84, 10));
  nn::Sequential stage = parallel::stage_of(net, world->size(), world->rank());
  torch::optim::Adam optimizer(stage->parameters(), torch::optim::AdamOptions(0.003));
  using Tensors = parallel::Pipeline::Tensors;
  parallel::Pipeline pipeline(stage.ptr(), world,
                              [&](const Tensors& inputs) { return Tensors{stage->forward(inputs[0])}; });

  // All stages load the same samples: the first one needs the images, the last one the labels.
  const data::Splits digits = datasets::synthetic_digits({.seed = 1});
  const data::LaneSampler sampler(
      {.dataset_size = digits.train->size(), .lanes = kMicroBatches, .batch_size = 64 / kMicroBatches, .seed = 1});
  data::Loader loader(digits.train, sampler, {.first_lane = 0, .last_lane = kMicroBatches});

  for (int64_t step = 0; step < steps; ++step) {
    const data::StepBatch batch = loader.next();
    parallel::PipelineStep plan{.number = step};
    for (const data::LaneBatch& micro_batch : batch.lanes) plan.samples.push_back(micro_batch.size());
    optimizer.zero_grad();
    const auto result = pipeline.run(
        plan, [&](size_t i) { return Tensors{batch.lanes[i].data()}; },
        [&](const Tensors& outputs, size_t i) { return at::cross_entropy_loss(outputs[0], batch.lanes[i].target()); });
    optimizer.step();
    if (step % 10 == 9 && world->rank() == 0) {
      std::printf("step %ld: loss %.9g\n", static_cast<long>(step + 1), result.loss);
    }
  }
}
