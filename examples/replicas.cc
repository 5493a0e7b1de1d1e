// The loop of single_process.cc, whose batches are divided among replicas of the network, on threads of one process.
//
//   example_replicas [STEPS [REPLICAS]]
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
#include "lockstep/parallel/replicas/data_parallel.h"

namespace data = lockstep::data;
namespace datasets = lockstep::datasets;
namespace nn = torch::nn;
namespace parallel = lockstep::parallel;

int main(int argc, char** argv) {
  const int64_t steps = argc > 1 ? std::atoll(argv[1]) : 200;
  const auto replicas = static_cast<size_t>(argc > 2 ? std::atoll(argv[2]) : 2);

  at::manual_seed(1);
  nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(1, 6, 5).padding(2)), nn::ReLU(), nn::MaxPool2d(2),
                     nn::Conv2d(6, 16, 5), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(400, 120),
                     nn::ReLU(), nn::Linear(120, 84), nn::ReLU(), nn::Linear(84, 10));
  parallel::DataParallel<nn::SequentialImpl> parallel(net, {.device_ids = parallel::on_cpu(replicas)});
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.003));

  const data::Splits digits = datasets::synthetic_digits({.seed = 1});
  const data::LaneSampler sampler({.dataset_size = digits.train->size(), .lanes = 1, .batch_size = 64, .seed = 1});
  data::Loader loader(digits.train, sampler, {});

  for (int64_t step = 0; step < steps; ++step) {
    const data::LaneBatch batch = loader.next().lanes[0];
    optimizer.zero_grad();
    const at::Tensor loss = at::cross_entropy_loss(parallel(batch.data()), batch.target());
    loss.backward();
    optimizer.step();
    if (step % 10 == 9) std::printf("step %ld: loss %.9g\n", static_cast<long>(step + 1), loss.item<double>());
  }
}
