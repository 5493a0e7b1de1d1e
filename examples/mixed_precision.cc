// data_parallel.cc in mixed precision: two lines more, with libtorch's own optimizer, on any number of processes.
//
//   lockstep launch --nproc 2 example_mixed_precision [STEPS] [O0|O1|O2|O3] [bf16|fp16]
#include "lockstep/amp/mixed_precision.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/data/loader.h"
#include "lockstep/datasets/drawn/synthetic_digits.h"
#include "lockstep/models/lenet.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/world/world.h"

namespace amp = lockstep::amp;
namespace data = lockstep::data;
namespace datasets = lockstep::datasets;

constexpr int kLanes = 4;

int run(int64_t steps, const amp::Options& options) {
  const auto world = lockstep::init();
  const data::Splits digits = datasets::synthetic_digits({.seed = 1});
  lockstep::models::LeNet net(lockstep::models::LeNetOptions{}, /*seed=*/1);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  amp::MixedPrecision mixed({net.get()}, {optimizer}, options);  // casts the model, makes masters
  lockstep::parallel::DistributedDataParallel ddp(net.ptr(), world);

  const data::LaneSampler sampler(
      {.dataset_size = digits.train->size(), .lanes = kLanes, .batch_size = 64 / kLanes, .seed = 1});
  const auto own = world->own_lanes(kLanes);
  data::Loader loader(digits.train, sampler, {.first_lane = own.first, .last_lane = own.last});

  for (int64_t step = 0; step < steps; ++step) {
    const auto loss_of = [&](const data::LaneBatch& lane) {
      return at::cross_entropy_loss(net->forward(lane.data()), lane.target());
    };
    const auto result = ddp.run(step, loader.next(), loss_of, mixed);  // casts, scales, folds
    mixed.step(optimizer, result);  // or skips after an overflow; sets the next scale
    mixed.zero_grad(optimizer);
    if (step % 10 == 9 && world->rank() == 0) {
      std::printf("step %ld: loss %.9g\n", static_cast<long>(step + 1), result.loss.item());
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  at::set_num_threads(1);
  try {
    const bool half = argc > 3 && std::string_view(argv[3]) == "fp16";
    return run(argc > 1 ? std::atoll(argv[1]) : 200, {.opt_level = amp::parse_opt_level(argc > 2 ? argv[2] : "O1"),
                                                      .dtype = half ? at::kHalf : at::kBFloat16});
  } catch (const lockstep::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.exit_code();
  }
}
