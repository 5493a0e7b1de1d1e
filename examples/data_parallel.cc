// The loop of single_process.cc on any number of processes. The global batch is cut into four lanes, so 1, 2 and 4
// processes print the same losses, to the last bit.
//
//   lockstep launch --nproc 2 example_data_parallel [STEPS]      (or torchrun, mpirun, srun)
#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <cstdlib>

#include "lockstep/data/loader.h"
#include "lockstep/datasets/drawn/synthetic_digits.h"
#include "lockstep/models/lenet.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/world/world.h"

namespace data = lockstep::data;
namespace datasets = lockstep::datasets;
namespace parallel = lockstep::parallel;

constexpr int kLanes = 4;

int main(int argc, char** argv) {
  const int64_t steps = argc > 1 ? std::atoll(argv[1]) : 200;
  at::set_num_threads(1);
  const auto world = lockstep::init();

  const data::Splits digits = datasets::synthetic_digits({.seed = 1});
  lockstep::models::LeNet net(lockstep::models::LeNetOptions{}, /*seed=*/1);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  parallel::DistributedDataParallel ddp(net.ptr(), world);

  const data::LaneSampler sampler(
      {.dataset_size = digits.train->size(), .lanes = kLanes, .batch_size = 64 / kLanes, .seed = 1});
  const auto own = world->own_lanes(kLanes);
  data::Loader loader(digits.train, sampler, {.first_lane = own.first, .last_lane = own.last});

  for (int64_t step = 0; step < steps; ++step) {
    const data::StepBatch batch = loader.next();
    optimizer.zero_grad();
    const auto result = ddp.run(step, batch, [&](const data::LaneBatch& lane) {
      return at::cross_entropy_loss(net->forward(lane.data()), lane.target());
    });
    optimizer.step();
    if (step % 10 == 9 && world->rank() == 0) {
      std::printf("step %ld: loss %.9g\n", static_cast<long>(step + 1), result.loss.item());
    }
  }
}
