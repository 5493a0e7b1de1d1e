// A pipeline whose last stage stands still in its third step: the others wait for it, the first ones for stages that
// wait themselves. For form_faults_test.cc.
//
//   lockstep launch --nproc-per-node 3 hanging_stage BACKEND
#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <unistd.h>

#include <chrono>

#include "lockstep/base/run_main.h"
#include "lockstep/parallel/pipeline/pipeline.h"
#include "lockstep/world/world.h"

using namespace lockstep;
using Tensors = parallel::Pipeline::Tensors;

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  return run_main([&] {
    at::set_num_threads(1);
    const auto world = init({.backend = argv[1], .timeout = std::chrono::seconds(6)});
    torch::nn::Sequential net(torch::nn::Linear(4, 4), torch::nn::Tanh(), torch::nn::Linear(4, 4), torch::nn::Tanh(),
                              torch::nn::Linear(4, 1));
    torch::nn::Sequential stage = parallel::stage_of(net, world->size(), world->rank());
    parallel::Pipeline pipeline(stage.ptr(), world,
                                [&](const Tensors& inputs) { return Tensors{stage->forward(inputs[0])}; });
    for (int64_t step = 0; step < 5; ++step) {
      stage->zero_grad();
      pipeline.run(
          {.number = step, .samples = {2, 2, 2, 2}},
          [](size_t) {
            return Tensors{at::ones({2, 4})};
          },
          [&](const Tensors& outputs, size_t) {
            while (step == 2) pause();
            return outputs[0].square().mean();
          });
    }
    return 0;
  });
}
