// A network whose body has two heads, one for a digit's class and one for the box around it, each computed by a process
// of its own. 1 and 2 processes print the same losses, but for their last digits.
//
//   lockstep launch --nproc 2 example_branches [STEPS]      (or torchrun, mpirun, srun)
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#include "lockstep/data/loader.h"
#include "lockstep/datasets/drawn/synthetic_digits.h"
#include "lockstep/parallel/tensor/regions.h"
#include "lockstep/world/world.h"

namespace data = lockstep::data;
namespace datasets = lockstep::datasets;
namespace tensor = lockstep::parallel::tensor;

struct NetImpl : torch::nn::Module {
  NetImpl() {
    using torch::nn::Conv2dOptions;
    first = register_module("first", torch::nn::Conv2d(Conv2dOptions(1, 16, 5).stride(2)));
    second = register_module("second", torch::nn::Conv2d(Conv2dOptions(16, 32, 5).stride(2)));
    classes = register_module("classes", torch::nn::Linear(512, 10));
    boxes = register_module("boxes", torch::nn::Linear(512, 4));
  }
  at::Tensor features(const at::Tensor& images) {
    return at::relu(second->forward(at::relu(first->forward(images)))).flatten(1);
  }

  torch::nn::Conv2d first{nullptr}, second{nullptr};
  torch::nn::Linear classes{nullptr}, boxes{nullptr};
};
TORCH_MODULE(Net);

// The first and last column and row with ink, of [n, 1, h, w] images as shares of their size: [n, 4].
at::Tensor boxes_of(const at::Tensor& images) {
  const at::Tensor ink = images.squeeze(1).gt(0.5);
  std::vector<at::Tensor> sides;
  for (const int64_t dim : {1, 2}) {
    const at::Tensor line = ink.any(dim).to(at::kByte);  // argmax finds the first of equal ones
    const auto size = static_cast<double>(line.size(1));
    sides.push_back(line.argmax(1) / size);
    sides.push_back(1 - line.flip(1).argmax(1) / size);
  }
  return at::stack(sides, 1).to(at::kFloat);
}

int main(int argc, char** argv) {
  const int64_t steps = argc > 1 ? std::atoll(argv[1]) : 200;
  at::set_num_threads(1);
  const auto world = lockstep::init();
  lockstep::comm::Communicator& ranks = world->communicator();

  at::manual_seed(1);  // the same body on all ranks
  Net net;
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.003));

  // All ranks read the same samples.
  const data::Splits digits = datasets::synthetic_digits({.seed = 1});
  const data::LaneSampler sampler({.dataset_size = digits.train->size(), .lanes = 1, .batch_size = 64, .seed = 1});
  data::Loader loader(digits.train, sampler, {});

  for (int64_t step = 0; step < steps; ++step) {
    const data::LaneBatch batch = loader.next().lanes[0];
    optimizer.zero_grad();
    // enter() adds up the gradients of both heads for the body, leave() their losses. A rank has the gradients of its
    // own head alone, and the optimizer passes the other one by.
    const at::Tensor features = tensor::enter(net->features(batch.data()), ranks);
    const std::function<at::Tensor()> heads[] = {
        [&] { return at::cross_entropy_loss(net->classes->forward(features), batch.target()); },
        [&] { return 10 * at::mse_loss(net->boxes->forward(features), boxes_of(batch.data())); }};
    at::Tensor own = features.sum() * 0;  // of a rank without a head
    for (int head = world->rank(); head < 2; head += world->size()) own = own + heads[head]();
    const at::Tensor loss = tensor::leave(own, ranks);
    loss.backward();
    optimizer.step();
    if (step % 10 == 9 && world->rank() == 0) {
      std::printf("step %ld: loss %.9g\n", static_cast<long>(step + 1), loss.item<double>());
    }
  }
}
