// A loop of one's own with everything that a run needs: BatchNorm, mixed precision, clipping, a schedule, exact
// validation, early stopping, checkpoints. Killed and started again, on any number of ranks, it ends with the same
// weights, to the last bit.
//
//   lockstep launch --nproc 2 example_own_loop runs/spiral [STEPS]      (or torchrun, mpirun, srun)
#include <ATen/ATen.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/base/run_main.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/data/tensor_dataset.h"
#include "lockstep/loop/early_stopping.h"
#include "lockstep/loop/evaluate.h"
#include "lockstep/loop/make_loader.h"
#include "lockstep/loop/state.h"
#include "lockstep/optim/rules/adam.h"
#include "lockstep/schedule/schedule.h"

using namespace lockstep;

// Points on two spirals with some noise, each a function of its number.
std::shared_ptr<data::Dataset> spirals(int64_t first, int64_t size) {
  const at::Tensor number = at::arange(first, first + size, at::kDouble), spiral = number.remainder(2);
  const at::Tensor angle = M_PI * (3 * number.mul(0.618).frac() + spiral);
  const at::Tensor radius = number.mul(0.618).frac() + 0.02 * number.mul(37).sin();
  return std::make_shared<data::TensorDataset>(
      at::stack({radius * angle.cos(), radius * angle.sin()}, 1).to(at::kFloat), spiral.to(at::kLong));
}

torch::nn::Sequential make_net() {
  namespace nn = torch::nn;
  return nn::Sequential(nn::Linear(2, 64), nn::BatchNorm1d(64), nn::ReLU(), nn::Linear(64, 64), nn::BatchNorm1d(64),
                        nn::ReLU(), nn::Linear(64, 2));
}

int train(const std::string& folder, int64_t steps) {
  const auto world = init();
  const bool leads = world->rank() == 0;
  torch::manual_seed(1);

  auto net = make_net();
  optim::AdamW optimizer(net->parameters(), {.lr = 0.01});
  amp::MixedPrecision mixed({net.get()}, {&optimizer}, {.opt_level = amp::OptLevel::kO1, .dtype = at::kHalf});
  parallel::DistributedDataParallel ddp(net.ptr(), world);
  const schedule::ScheduleOptions schedule{.shape = schedule::CosineLr{.t_max = steps}, .base_lr = 0.01};

  const auto points = spirals(0, 1000), held_out = spirals(1000, 333);
  data::Loader loader = loop::make_loader(*world, points, {.lanes = 4, .batch_size = 16, .seed = 1});

  int64_t step = 0;
  loop::EarlyStopping stopping({.patience = 5});
  loop::State state(*world, step,
                    {{"model", ddp},
                     {"optimizer", optimizer},
                     {"amp", mixed},
                     {"schedule", schedule},
                     {"sampler", loader},
                     {"stopping", stopping}});
  checkpoint::CheckpointStore store(folder + "/checkpoints");
  if (state.load(store) && leads) std::printf("resumed at step %ld\n", static_cast<long>(step));

  while (step < steps && !stopping.ended()) {
    const auto batch = loader.next();
    optimizer.set_lr(schedule::lr_at(schedule, step));
    const auto loss_of = [&](const auto& lane) {
      return at::cross_entropy_loss(net->forward(lane.data()), lane.target());
    };
    const auto result = ddp.run(step, batch, loss_of, mixed);
    mixed.step(optimizer, result, {.max_norm = 1});
    mixed.zero_grad(optimizer);
    if (++step % 50 != 0 && step != steps) continue;

    const auto found = loop::evaluate(ddp, *held_out, [&](const data::Batch& some) -> loop::Sums {
      const at::Tensor output = mixed.forward(net, some.data());
      return {{"correct", output.argmax(1).eq(some.target()).sum().item<double>()},
              {"loss", at::cross_entropy_loss(output, some.target(), {}, at::Reduction::Sum).item<double>()}};
    });
    state.save(store, stopping.observe(found.mean("correct")));
    if (leads) {
      std::printf("step %ld: loss %.6f, held out: loss %.6f, accuracy %.4f\n", static_cast<long>(step),
                  result.loss.item(), found.mean("loss"), found.mean("correct"));
    }
  }
  if (leads) std::printf("weights %s\n", checkpoint::weights_sha256(*net).c_str());
  return 0;
}

int main(int argc, char** argv) {
  return run_main([&] { return train(argc > 1 ? argv[1] : "runs/spiral", argc > 2 ? std::atoll(argv[2]) : 1000); });
}
