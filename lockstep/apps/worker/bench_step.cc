// bench step: the time of a training step on made-up data, with everything that a step of a run has.
#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <algorithm>

#include "commands.h"
#include "lockstep/amp/autocast.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/single_communicator.h"
#include "lockstep/config/world.h"
#include "lockstep/models/lenet.h"
#include "lockstep/optim/make_optimizer.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/train/setup.h"

namespace lockstep::worker {
namespace {

constexpr int kWarmup = 20;
constexpr double kSeconds = 4;  // of measuring, and at least 30 steps

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A model, data that never change, and the step.
class Bench {
 public:
  Bench(const config::BenchOptions& options, std::shared_ptr<comm::World> world)
      : options_(options),
        net_(models::LeNetOptions{}, 1),
        policy_{.level = options.dtype == config::BenchType::kBf16 ? amp::OptLevel::kO1 : amp::OptLevel::kO0},
        images_(at::randn({options.batch_size, 1, 28, 28})),
        labels_(at::randint(0, 10, {options.batch_size}, at::kLong)),
        rank_(world->rank()),
        size_(world->size()) {
    train::set_memory_format(*net_, options.channels_last);
    if (options.channels_last) images_ = images_.contiguous(at::MemoryFormat::ChannelsLast);
    const bool sgd = options.optimizer == config::BenchOptimizer::kSgd;
    optimizer_ = optim::make_optimizer(sgd ? "sgd" : "adamw", net_->parameters(), {{"lr", 1e-3}});
    ddp_ = std::make_unique<parallel::DistributedDataParallel>(net_.ptr(), std::move(world));
  }

  void step() {
    const amp::CastCacheScope casts;
    if (options_.no_comm) {
      optimizer_->zero_grad();
      loss().backward();
    } else {
      ddp_->run({.number = number_++,
                 .samples = int64_t{size_} * options_.batch_size,
                 .lanes = {{rank_, options_.batch_size}}},
                [this](size_t) { return loss(); });
    }
    optimizer_->update({});
  }

  int64_t parameters() const {
    int64_t count = 0;
    for (const auto& parameter : net_->parameters()) count += parameter.numel();
    return count;
  }

 private:
  at::Tensor loss() {
    const amp::AutocastScope autocast(policy_);
    return at::cross_entropy_loss(net_->forward(images_).to(at::kFloat), labels_);
  }

  const config::BenchOptions& options_;
  models::LeNet net_;
  amp::Policy policy_;
  at::Tensor images_, labels_;
  int rank_, size_;
  int64_t number_ = 0;
  std::unique_ptr<optim::FusedOptimizer> optimizer_;
  std::unique_ptr<parallel::DistributedDataParallel> ddp_;
};

}  // namespace

int bench_step(const config::BenchOptions& options) {
  if (options.model != config::BenchModel::kLenet) {
    throw ConfigError("bench step --model: only lenet is available yet");
  }
  const auto world = init();
  at::set_num_threads(options.threads > 0 ? options.threads : config::default_threads(usable_cores(), world->size()));
  Bench bench(options, world);
  for (int i = 0; i < kWarmup; ++i) bench.step();
  // All ranks stop at the same step: rank 0's clock decides, from the time of the steps before.
  std::vector<double> times;
  const Stopwatch probe;
  for (int i = 0; i < 10; ++i) bench.step();
  const at::Tensor count = at::full({1}, std::max(30.0, kSeconds / (probe.seconds() / 10)), at::kDouble);
  world->communicator().broadcast(count, 0);
  for (auto left = static_cast<int64_t>(count.item<double>()); left > 0; --left) {
    const Stopwatch watch;
    bench.step();
    times.push_back(watch.seconds());
  }
  world->communicator().barrier();
  if (world->rank() != 0) return 0;
  const double step = median(times);
  const nlohmann::ordered_json result = {{"model", "lenet"},
                                         {"ranks", world->size()},
                                         {"step_ms", step * 1e3},
                                         {"images_per_second", world->size() * options.batch_size / step},
                                         {"parameters", bench.parameters()}};
  print(options.json ? result.dump() + '\n'
                     : cat("lenet, ", world->size(), " ranks: ", step * 1e3, " ms a step, ",
                           result["images_per_second"].get<double>(), " images/s\n"));
  return 0;
}

}  // namespace lockstep::worker
