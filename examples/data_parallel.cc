// The loop of single_process.cc on any number of processes. The global batch is cut into four lanes, so 1, 2 and 4
// processes print the same losses, to the last bit.
//
//   lockstep launch --nproc 2 example_data_parallel [STEPS]      (or torchrun, mpirun, srun)
#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <cstdlib>

#include "lockstep/comm/fold_tree.h"
#include "lockstep/comm/world.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/synthetic_digits.h"
#include "lockstep/models/lenet.h"
#include "lockstep/parallel/distributed_data_parallel.h"

namespace data = lockstep::data;
namespace parallel = lockstep::parallel;

constexpr int kLanes = 4;

int main(int argc, char** argv) {
  const int64_t steps = argc > 1 ? std::atoll(argv[1]) : 200;
  at::set_num_threads(1);
  const auto world = lockstep::init();
  if (!lockstep::comm::lanes_fit(kLanes, world->size())) {
    std::fprintf(stderr, "%d lanes: run it on 1, 2 or 4 processes\n", kLanes);
    return 2;
  }

  const data::Splits digits = data::synthetic_digits({.seed = 1});
  lockstep::models::LeNet net(lockstep::models::LeNetOptions{}, /*seed=*/1);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  parallel::DistributedDataParallel ddp(net.ptr(), world);

  const data::LaneSampler sampler(
      {.dataset_size = digits.train->size(), .lanes = kLanes, .batch_size = 64 / kLanes, .seed = 1});
  const int own = kLanes / world->size();  // lanes of this rank
  data::Loader loader(digits.train, sampler,
                      {.first_lane = world->rank() * own, .last_lane = (world->rank() + 1) * own});

  for (int64_t step = 0; step < steps; ++step) {
    const data::StepBatch batch = loader.next();
    parallel::StepPlan plan{.number = step, .samples = batch.global_samples, .lanes = {}};
    for (const auto& lane : batch.lanes) plan.lanes.push_back({lane.lane, lane.size()});
    const auto result = ddp.run(plan, [&](size_t i) {
      const auto& lane = batch.lanes[i];
      return at::cross_entropy_loss(net->forward(lane.data), lane.target);
    });
    optimizer.step();
    if (step % 10 == 9 && world->rank() == 0) {
      std::printf("step %ld: loss %.9g\n", static_cast<long>(step + 1), result.loss);
    }
  }
}
