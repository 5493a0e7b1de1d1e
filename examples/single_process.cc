// A training loop on plain libtorch, in one process: LeNet on digits that are drawn on the spot.
// data_parallel.cc is the same loop on any number of processes.
//
//   example_single_process [STEPS]
#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <cstdlib>

#include "lockstep/data/loader.h"
#include "lockstep/datasets/drawn/synthetic_digits.h"
#include "lockstep/models/lenet.h"

namespace data = lockstep::data;
namespace datasets = lockstep::datasets;

int main(int argc, char** argv) {
  const int64_t steps = argc > 1 ? std::atoll(argv[1]) : 200;
  at::set_num_threads(1);

  const data::Splits digits = datasets::synthetic_digits({.seed = 1});
  lockstep::models::LeNet net(lockstep::models::LeNetOptions{}, /*seed=*/1);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));

  const data::LaneSampler sampler({.dataset_size = digits.train->size(), .lanes = 1, .batch_size = 64, .seed = 1});
  data::Loader loader(digits.train, sampler, {});

  for (int64_t step = 0; step < steps; ++step) {
    const data::StepBatch batch = loader.next();
    optimizer.zero_grad();
    const auto& lane = batch.lanes[0];
    const at::Tensor loss = at::cross_entropy_loss(net->forward(lane.data()), lane.target());
    loss.backward();
    optimizer.step();
    if (step % 10 == 9) std::printf("step %ld: loss %.9g\n", static_cast<long>(step + 1), loss.item<double>());
  }
}
