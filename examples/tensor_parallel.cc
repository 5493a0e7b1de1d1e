// A network whose largest layers are divided among the processes, each of which keeps its part of their weights. 1, 2
// and 4 processes print the same losses, but for their last digits.
//
//   lockstep launch --nproc 2 example_tensor_parallel [STEPS]      (or torchrun, mpirun, srun)
#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <cstdio>
#include <cstdlib>

#include "lockstep/data/loader.h"
#include "lockstep/datasets/drawn/synthetic_digits.h"
#include "lockstep/parallel/tensor/layers.h"
#include "lockstep/world/world.h"

namespace data = lockstep::data;
namespace datasets = lockstep::datasets;
namespace tensor = lockstep::parallel::tensor;

// Two towers of convolutions, as AlexNet had on two GPUs, then wide Linear layers. All of them are made whole, on all
// ranks alike, and then divided.
struct NetImpl : torch::nn::Module {
  explicit NetImpl(lockstep::comm::Communicator& ranks) {
    using torch::nn::Conv2dOptions;
    first = register_module("first",
                            tensor::ChannelParallelConv2d(torch::nn::Conv2d(Conv2dOptions(1, 16, 5).stride(2)), ranks));
    towers = register_module(
        "towers", tensor::ChannelParallelConv2d(torch::nn::Conv2d(Conv2dOptions(16, 32, 5).groups(4).stride(2)), ranks,
                                                /*join=*/true));
    wide = register_module("wide", tensor::ColumnParallelLinear(torch::nn::Linear(512, 1024), ranks));
    narrow = register_module("narrow", tensor::RowParallelLinear(torch::nn::Linear(1024, 64), ranks));
    last = register_module("last", torch::nn::Linear(64, 10));
  }
  at::Tensor forward(const at::Tensor& images) {
    const at::Tensor features = at::relu(towers->forward(at::relu(first->forward(images)))).flatten(1);
    return last->forward(at::relu(narrow->forward(at::relu(wide->forward(features)))));
  }

  tensor::ChannelParallelConv2d first{nullptr}, towers{nullptr};
  tensor::ColumnParallelLinear wide{nullptr};
  tensor::RowParallelLinear narrow{nullptr};
  torch::nn::Linear last{nullptr};
};
TORCH_MODULE(Net);

int main(int argc, char** argv) {
  const int64_t steps = argc > 1 ? std::atoll(argv[1]) : 200;
  at::set_num_threads(1);
  const auto world = lockstep::init();

  at::manual_seed(1);
  Net net(world->communicator());
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.003));

  // All ranks read the same samples.
  const data::Splits digits = datasets::synthetic_digits({.seed = 1});
  const data::LaneSampler sampler({.dataset_size = digits.train->size(), .lanes = 1, .batch_size = 64, .seed = 1});
  data::Loader loader(digits.train, sampler, {});

  for (int64_t step = 0; step < steps; ++step) {
    const data::LaneBatch batch = loader.next().lanes[0];
    optimizer.zero_grad();
    const at::Tensor loss = at::cross_entropy_loss(net->forward(batch.data()), batch.target());
    loss.backward();
    optimizer.step();
    if (step % 10 == 9 && world->rank() == 0) {
      std::printf("step %ld: loss %.9g\n", static_cast<long>(step + 1), loss.item<double>());
    }
  }
}
