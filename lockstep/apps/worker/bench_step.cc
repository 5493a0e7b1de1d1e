// bench step: the time of a training step on one batch in memory, or on images that are loaded for it, with everything
// that a step of a run has.
#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "bench_device.h"
#include "bench_feed.h"
#include "bench_networks.h"
#include "bench_replicas.h"
#include "commands.h"
#include "lockstep/amp/autocast.h"
#include "lockstep/amp/mixed_precision.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/parallel/options/lanes.h"
#include "lockstep/parallel/sharded_optimizer.h"
#include "lockstep/train/auto_amp.h"
#include "lockstep/train/copy_stream.h"
#include "lockstep/train/device.h"
#include "lockstep/train/setup.h"
#include "lockstep/world/seeds.h"
#include "median.h"
#include "over_ranks.h"
#include "process_figures.h"
#include "step_trace.h"

namespace lockstep::worker {
namespace {

constexpr int kWarmup = 20, kProbe = 10;
constexpr double kWarmupSeconds = 2;  // is enough, and of the probe half of it
constexpr double kSeconds = 4;        // of measuring, and at least 20 steps
constexpr double kLeast = 20;
constexpr int64_t kBlocks = 10;      // of steps on a GPU: the host does not wait for the end of each
constexpr int kPairs = 11;           // of blocks, for the overhead
constexpr int64_t kTraced = 3;       // steps that --trace records
constexpr int64_t kStepsABlock = 6;  // at least: ranks that wait for each other at every step even out over some

// Whether every step folds its gradients. The fold says whether they are finite, which a loss scale depends on.
bool always_folds(const BenchOptions& options) { return !options.no_comm && !options.overhead; }

// --amp says which level; without it a 16-bit --dtype stands for O1. The loss scale is that of training, and 1 where
// steps leave the communication out: nobody looks at their gradients.
amp::Options amp_of(const BenchOptions& options, World& world) {
  const auto half = options.dtype == apps::BenchType::kFp16 ? amp::HalfType::kFp16 : amp::HalfType::kBf16;
  train::ResolvedAmp resolved{options.amp, half, ""};
  if (options.amp == amp::AmpLevel::kAuto) resolved = train::resolve_amp(half, options.device.kind, world);
  const bool narrow = options.amp == amp::AmpLevel::kO0 && options.dtype != apps::BenchType::kFp32;
  amp::Options amp = train::amp_options(narrow ? amp::AmpLevel::kO1 : resolved.level, resolved.dtype);
  if (amp.opt_level != amp::OptLevel::kO0 && !always_folds(options)) amp.loss_scale = 1;
  return amp;
}

// A model, its data, which never change or are loaded, and the step.
class Bench {
 public:
  Bench(const BenchOptions& options, const std::shared_ptr<World>& world)
      : options_(options),
        world_(world),
        device_(options.device, *world),
        net_(make_bench_network(options)),
        rank_(world->rank()),
        size_(world->size()) {
    net_.module->to(device_.device());
    train::set_memory_format(*net_.module, options.channels_last);
    if (options.replicas > 1) replicas_.emplace(options, net_);
    if (options.channels_last) net_.images = net_.images.contiguous(at::MemoryFormat::ChannelsLast);
    net_.images = net_.images.to(device_.device());
    net_.labels = net_.labels.to(device_.device());
    if (!options.loading.path.empty()) feed_.emplace(options, *world, net_, device_.device());
    auto whole = optim::make_optimizer(options.optimizer, net_.module->parameters(), {{"lr", 1e-3}});
    // `lockstep train` shards the optimizer too, where ranks share memory. Without communication there is nothing to
    // share.
    if (size_ > 1 && always_folds(options) && world->communicator().has_views()) {
      optimizer_ = std::make_unique<parallel::ShardedOptimizer>(std::move(whole), world->communicator());
    } else {
      optimizer_ = std::move(whole);
    }
    mixed_ =
        std::make_unique<amp::MixedPrecision>(std::vector<torch::nn::Module*>{net_.module.get()},
                                              std::vector<optim::OptimizerRef>{*optimizer_}, amp_of(options, *world));
    // Any backward pass of a wrapped network is folded.
    // Steps without communication let the ranks' weights drift apart.
    parallel::DdpOptions ddp{.broadcast_state = false};
    if (options.graph) ddp.device_graph = train::device_graphs(device_.device());
    if (!options.no_comm) ddp_ = std::make_unique<parallel::DistributedDataParallel>(net_.module, world, ddp);
  }

  void step(bool communicate) {
    const amp::CastCacheScope casts;
    if (feed_) fill();
    ddp_ ? ddp_->zero_grad() : net_.module->zero_grad();
    if (communicate) {
      const auto result = ddp_->run(
          {.number = number_++, .samples = size_ * net_.images.size(0), .lanes = {{rank_, net_.images.size(0)}}},
          [this](size_t) { return loss(); }, *mixed_);
      if (feed_) feed_->take_ahead();
      mixed_->step(*optimizer_, result);
    } else {
      std::optional<parallel::DistributedDataParallel::NoSync> local;
      if (ddp_ != nullptr) local.emplace(*ddp_);
      mixed_->forward([this] { return loss(); }).backward();
      optimizer_->update({});
    }
  }

  // The seconds of so many steps, to the end of the last one on the device.
  double seconds_of(int64_t steps, bool communicate) {
    const Stopwatch watch;
    for (int64_t i = 0; i < steps; ++i) step(communicate);
    device_.wait();
    return watch.seconds();
  }
  double seconds_of(int64_t steps) { return seconds_of(steps, !options_.no_comm); }

  const BenchDevice& device() const { return device_; }

  const std::string& name() const { return net_.name; }
  uint64_t reduced_bytes() const { return world_->self().reduced_bytes; }  // by all steps so far

  // Why steps are no CUDA graph; empty if they are, or were not to be.
  std::string no_graph() const {
    const parallel::LaneGraph* graph = ddp_ ? ddp_->lane_graph() : nullptr;
    if (options_.graph && graph == nullptr) return "several ranks";
    if (graph == nullptr || graph->is_recorded()) return "";
    return graph->refusal().empty() ? "never recorded" : graph->refusal();
  }

  // The seconds for which a step's batch is on its way from pinned memory to a GPU, with nothing beside it.
  double copy_seconds() const {
    constexpr int kCopies = 20;
    const auto stream = train::copy_stream(device_.device());
    const at::Tensor images = stream->pinned(net_.images.cpu()), labels = stream->pinned(net_.labels.cpu());
    std::vector<double> times;
    for (int i = 0; i < kCopies; ++i) {
      const Stopwatch watch;
      stream->run([&] { stream->copy(images), stream->copy(labels); });
      stream->record()->host_waits();
      times.push_back(watch.seconds());
    }
    return median(times);
  }

  double waited_seconds() const { return feed_ ? feed_->waited_seconds() : 0; }  // for data, in all steps so far

  int64_t parameters() const {
    int64_t count = 0;
    for (const auto& parameter : net_.module->parameters()) count += parameter.numel();
    return count;
  }

 private:
  at::Tensor forward() { return replicas_ ? replicas_->forward(net_.images) : net_.forward(net_.images); }

  // A step that is recorded reads the same memory as all others.
  void fill() {
    const at::Tensor images = net_.images, labels = net_.labels;
    feed_->fill(net_);
    if (!options_.graph) return;
    net_.images = images.copy_(net_.images, /*non_blocking=*/true);
    net_.labels = labels.copy_(net_.labels, /*non_blocking=*/true);
  }

  at::Tensor loss() { return at::cross_entropy_loss(forward().to(at::kFloat), net_.labels); }

  const BenchOptions& options_;
  std::shared_ptr<World> world_;
  BenchDevice device_;
  BenchNetwork net_;
  std::optional<BenchReplicas> replicas_;
  std::optional<BenchFeed> feed_;
  int rank_, size_;
  int64_t number_ = 0;
  std::unique_ptr<parallel::DistributedDataParallel> ddp_;
  std::unique_ptr<optim::AnyOptimizer> optimizer_;
  std::unique_ptr<amp::MixedPrecision> mixed_;
};

// Up to `most` steps in about `seconds`: how long one takes. All ranks do the same number, which rank 0's clock decides
// from the first.
double probe(Bench& bench, comm::Communicator& comm, int most, double seconds) {
  const double wanted = std::clamp(seconds / bench.seconds_of(1), 2.0, static_cast<double>(most)) - 1;
  const at::Tensor count = at::full({1}, wanted, at::kDouble);
  comm.broadcast(count, 0);
  const auto steps = static_cast<int64_t>(count.item<double>());
  return bench.seconds_of(steps) / static_cast<double>(steps);
}

// The most that tensors take of the device in a step. A recorded step's memory is the recording's, which libtorch does
// not count as taken: this one is not recorded yet.
double step_peak_mb(Bench& bench) {
  bench.device().forget_peak();
  bench.seconds_of(1);
  return bench.device().peak_mb();
}

int64_t steps_to_measure(Bench& bench, comm::Communicator& comm, double seconds) {
  const double warmup = std::min(kWarmupSeconds, seconds / 2);
  probe(bench, comm, kWarmup, warmup);
  const double step = probe(bench, comm, kProbe, warmup / 2);
  const at::Tensor count = at::full({1}, std::max(kLeast, seconds / step), at::kDouble);
  comm.broadcast(count, 0);
  return static_cast<int64_t>(count.item<double>());
}

struct Overhead {
  double ratio = 0;            // the median of the pairs of blocks
  uint64_t bytes_without = 0;  // of gradients that steps without communication have reduced
};

// Steps with communication by those without it, in blocks by turns.
Overhead overhead(Bench& bench, comm::Communicator& comm, int64_t steps_a_block) {
  Overhead result;
  const auto block = [&](bool communicate) {
    comm.barrier();
    const uint64_t bytes = bench.reduced_bytes();
    const Stopwatch watch;
    bench.seconds_of(steps_a_block, communicate);
    comm.barrier();
    if (!communicate) result.bytes_without += bench.reduced_bytes() - bytes;
    return watch.seconds();
  };
  std::vector<double> ratios;
  for (int pair = 0; pair < kPairs; ++pair) {
    const bool first = pair % 2 == 0;  // which of the two comes first changes, too
    const double one = block(first), other = block(!first);
    ratios.push_back(first ? one / other : other / one);
  }
  result.ratio = median(ratios);
  return result;
}

std::string text_of(const nlohmann::ordered_json& result) {
  std::string text =
      cat(result["model"].get<std::string>(), ", ", result["ranks"].get<int>(),
          " ranks: ", result["step_ms"].get<double>(), " ms a step, ", result["images_per_second"].get<double>(),
          " images/s, ", std::lround(result["pss_mb_all"].get<double>()), " MB of memory (PSS) together");
  if (result.contains("device_peak_mb_all")) {
    text += cat(", at most ", std::lround(result["device_peak_mb_all"].get<double>()),
                " MB on the GPU, a batch on its way there for ", result["host_to_device_ms"].get<double>(), " ms");
  }
  if (result.contains("overhead")) {
    text += cat(", ", result["overhead"].get<double>(), " times a step without communication");
  }
  return text + '\n';
}

}  // namespace

int bench_step(const BenchOptions& options) {
  train::require_gpu(options.device);
  train::let_gpus_repeat(options.device, options.deterministic);
  const auto world = init({.backend = train::backend_for(options.device, "auto"), .gpu = options.device.gpu});
  auto& comm = world->communicator();
  at::set_num_threads(parallel::threads_or_default(options.processes.threads, usable_cores(), world->size()));
  init_seeds(/*seed=*/1, options.deterministic);
  Bench bench(options, world);
  bench.seconds_of(1);  // compiles kernels, or tries them out, which takes long
  const double device_peak = step_peak_mb(bench);
  const int64_t steps = steps_to_measure(bench, comm, options.loading.seconds.value_or(kSeconds));
  const int64_t a_block = bench.device().is_cpu() ? 1 : std::max<int64_t>(1, steps / kBlocks);
  std::vector<double> times;
  const uint64_t bytes = bench.reduced_bytes();
  const double waited = bench.waited_seconds();
  const Stopwatch all;
  const double cpu = cpu_seconds();
  for (int64_t left = steps; left > 0; left -= a_block) {
    const int64_t count = std::min(left, a_block);
    times.push_back(bench.seconds_of(count) / static_cast<double>(count));
  }
  const auto a_step = [steps](double seconds) { return seconds * 1e3 / static_cast<double>(steps); };
  const double busy = over_ranks(cpu_seconds() - cpu, comm::ReduceOp::kSum, comm) /
                      over_ranks(all.seconds(), comm::ReduceOp::kSum, comm);
  const double mean_ms = a_step(all.seconds()), wait_ms = a_step(bench.waited_seconds() - waited);
  // Shared pages are divided among those who map them.
  const double memory = over_ranks(megabytes_in("/proc/self/smaps_rollup", "Pss:"), comm::ReduceOp::kSum, comm);
  const double peak = over_ranks(peak_mb(), comm::ReduceOp::kSum, comm);
  const double step = median(times);
  nlohmann::ordered_json result = {{"model", bench.name()},
                                   {"ranks", world->size()},
                                   {"replicas", options.replicas},
                                   {"device", train::write_device(options.device)},
                                   {"step_ms", step * 1e3},
                                   {"images_per_second", world->size() * options.replicas * options.batch_size / step},
                                   {"mean_step_ms", mean_ms},
                                   {"parameters", bench.parameters()},
                                   {"reduced_bytes", (bench.reduced_bytes() - bytes) / static_cast<uint64_t>(steps)},
                                   {"cpu_cores_a_process", busy},
                                   {"pss_mb_all", memory},
                                   {"peak_mb_all", peak}};
  if (!bench.device().is_cpu()) {
    result["device_peak_mb_all"] = over_ranks(device_peak, comm::ReduceOp::kSum, comm);
    result["host_to_device_ms"] = bench.copy_seconds() * 1e3;
  }
  if (!options.loading.path.empty()) result["wait_ms"] = wait_ms;
  if (options.graph) result["no_graph"] = bench.no_graph();
  if (options.overhead) {
    const Overhead found = overhead(bench, comm, std::max(kStepsABlock, steps / kPairs));
    result["overhead"] = found.ratio;
    result["reduced_bytes_without"] = found.bytes_without;
  }
  if (!options.trace.empty()) {
    std::optional<StepTrace> trace;
    if (world->rank() == 0) trace.emplace(!bench.device().is_cpu());
    bench.seconds_of(kTraced);
    if (trace) trace->write(options.trace);
  }
  comm.barrier();
  if (world->rank() == 0) print(options.json ? result.dump() + '\n' : text_of(result));
  return 0;
}

}  // namespace lockstep::worker
