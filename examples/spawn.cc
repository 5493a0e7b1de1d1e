// Ranks from within a program: two processes train a linear model on halves of the same data, and print one loss.
// Nothing launches them but this program itself, so it can be run as it is:
//
//   example_spawn [STEPS]
#include "lockstep/launch/spawn.h"

#include <ATen/Parallel.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <cstdlib>

#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/world/world.h"

// What each rank runs; `arguments` are what spawn() was given.
void train(int rank, const std::vector<std::string>& arguments) {
  const int64_t steps = std::atoll(arguments[0].c_str());
  at::set_num_threads(1);
  const auto world = lockstep::init();

  at::manual_seed(1);  // the same data and weights in every rank, and of them its own half
  const at::Tensor x = at::randn({64, 8}), y = x.sum(1, /*keepdim=*/true);
  torch::nn::Linear net(8, 1);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1));
  lockstep::parallel::DistributedDataParallel ddp(net.ptr(), world);
  const at::Tensor own_x = x.chunk(world->size())[rank], own_y = y.chunk(world->size())[rank];

  for (int64_t step = 0; step < steps; ++step) {
    const auto result = ddp.run({.number = step, .samples = 64, .lanes = {{rank, own_x.size(0)}}},
                                [&](size_t) { return at::mse_loss(net->forward(own_x), own_y); });
    optimizer.step();
    optimizer.zero_grad();
    if (step % 10 == 9 && rank == 0)
      std::printf("step %ld: loss %.9g\n", static_cast<long>(step + 1), result.loss.item());
  }
}
LOCKSTEP_SPAWNABLE(train);

int main(int argc, char** argv) {
  return lockstep::spawn_main([&] {  // where a rank turns off, to train() instead
    lockstep::spawn(train, {argc > 1 ? argv[1] : "50"}, /*nproc=*/2);
    return 0;
  });
}
