// single_process.cc in mixed precision: three lines more, and libtorch's own optimizer.
//
//   example_mixed_precision [STEPS] [O0|O1|O2|O3] [bf16|fp16]
#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/compat/apex/amp.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/synthetic_digits.h"
#include "lockstep/models/lenet.h"

namespace amp = lockstep::apex::amp;
namespace data = lockstep::data;

int run(int64_t steps, const amp::InitializeOptions& options) {
  const data::Splits digits = data::synthetic_digits({.seed = 1});
  lockstep::models::LeNet net(lockstep::models::LeNetOptions{}, /*seed=*/1);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  const auto mixed = amp::initialize(*net, optimizer, options);  // casts the model, makes masters

  const data::LaneSampler sampler({.dataset_size = digits.train->size(), .lanes = 1, .batch_size = 64, .seed = 1});
  data::Loader loader(digits.train, sampler, {});

  for (int64_t step = 0; step < steps; ++step) {
    const data::StepBatch batch = loader.next();
    mixed->zero_grad(optimizer);
    const auto& lane = batch.lanes[0];
    const at::Tensor loss =
        at::cross_entropy_loss(mixed->forward([&] { return net->forward(lane.data); }), lane.target);
    {
      const auto scaled = mixed->scale_loss(loss, optimizer);
      scaled.backward();
    }  // unscaled, looked at, and the next scale set
    mixed->step(optimizer);
    if (step % 10 == 9) std::printf("step %ld: loss %.9g\n", static_cast<long>(step + 1), loss.item<double>());
  }
  return 0;
}

int main(int argc, char** argv) {
  at::set_num_threads(1);
  try {
    const bool half = argc > 3 && std::string_view(argv[3]) == "fp16";
    return run(argc > 1 ? std::atoll(argv[1]) : 200,
               {.opt_level = argc > 2 ? argv[2] : "O1", .dtype = half ? at::kHalf : at::kBFloat16});
  } catch (const lockstep::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.exit_code();
  }
}
