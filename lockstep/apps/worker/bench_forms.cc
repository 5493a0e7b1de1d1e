// bench forms: one network and batch, trained in parallel in one of several forms (docs/choosing.md).
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/tensor.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <thread>

#include "bench_networks.h"
#include "bench_replicas.h"
#include "commands.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/parallel/options/lanes.h"
#include "lockstep/parallel/pipeline/pipeline.h"
#include "lockstep/parallel/pipeline/pipeline_groups.h"
#include "lockstep/parallel/pipeline/stage_plan.h"
#include "lockstep/parallel/server/parameter_server.h"
#include "lockstep/parallel/server/served_parameters.h"
#include "lockstep/parallel/sharded_optimizer.h"
#include "lockstep/parallel/tensor/layers.h"
#include "lockstep/train/setup.h"
#include "median.h"
#include "over_ranks.h"
#include "process_figures.h"

namespace lockstep::worker {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr int64_t kLeastSteps = 5;
constexpr double kLr = 1e-3;

at::Tensor loss_of(const at::Tensor& scores, const at::Tensor& labels) {
  return at::cross_entropy_loss(scores, labels);
}

BenchNetwork network_of(const BenchOptions& options) {
  at::manual_seed(1);  // all processes have the whole batch
  BenchNetwork net = make_bench_network(options);
  train::set_memory_format(*net.module, options.channels_last);
  net.images = net.images.contiguous(at::MemoryFormat::ChannelsLast);
  return net;
}

std::unique_ptr<optim::FusedOptimizer> sgd_of(const Tensors& parameters) {
  return optim::make_optimizer("sgd", parameters, {{"lr", kLr}, {"momentum", 0.9}});
}

// One form of training. `bytes()`: that this process has sent in all steps so far.
class Form {
 public:
  virtual ~Form() = default;
  virtual void step() = 0;
  virtual double bytes() const = 0;
};

// What a rank sends where N of them add up so many bytes in parts: each part once to its owner, and once back.
double bytes_of_sum(double bytes, int ranks) { return 2 * bytes * (ranks - 1) / ranks; }

class DataParallelForm final : public Form {
 public:
  DataParallelForm(const BenchOptions& options, const std::shared_ptr<World>& world, bool sharded)
      : net_(network_of(options)), world_(world), ddp_(net_.module, world) {
    const int64_t own = options.batch_size / world->size(), first = own * world->rank();
    net_.images = net_.images.narrow(0, first, own);
    net_.labels = net_.labels.narrow(0, first, own);
    auto whole = sgd_of(net_.module->parameters());
    if (sharded) {
      optimizer_ = std::make_unique<parallel::ShardedOptimizer>(std::move(whole), world->communicator());
    } else {
      optimizer_ = std::move(whole);
    }
  }
  void step() override {
    ddp_.zero_grad();
    const int64_t own = net_.images.size(0);
    ddp_.run({.number = number_++, .samples = own * world_->size(), .lanes = {{world_->rank(), own}}},
             [this](size_t) { return loss_of(net_.forward(net_.images), net_.labels); });
    optimizer_->update({});
  }
  double bytes() const override {
    return bytes_of_sum(static_cast<double>(world_->self().reduced_bytes), world_->size());
  }

 private:
  BenchNetwork net_;
  std::shared_ptr<World> world_;
  parallel::DistributedDataParallel ddp_;
  std::unique_ptr<optim::AnyOptimizer> optimizer_;
  int64_t number_ = 0;
};

class ReplicasForm final : public Form {
 public:
  explicit ReplicasForm(const BenchOptions& options)
      : net_(network_of(of_all(options))), replicas_(options, net_), optimizer_(sgd_of(net_.module->parameters())) {}
  void step() override {
    net_.module->zero_grad();
    loss_of(replicas_.forward(net_.images), net_.labels).backward();
    optimizer_->update({});
  }
  double bytes() const override { return 0; }

 private:
  // bench step's --batch-size is that of a replica, and this one's of all.
  static BenchOptions of_all(BenchOptions options) { return options.replicas = 1, options; }

  BenchNetwork net_;
  BenchReplicas replicas_;
  std::unique_ptr<optim::AnyOptimizer> optimizer_;
};

// Stages over the ranks; with `replicas`, over half of them, beside another pipeline with the other half of the batch.
class PipelineForm final : public Form {
 public:
  PipelineForm(const BenchOptions& options, const std::shared_ptr<World>& world, bool replicas) : whole_(world) {
    const int size = world->size(), stages = replicas ? size / 2 : size;
    if (replicas && size % 2 != 0) throw ConfigError("--form pipeline-ddp: ", size, " processes are no two pipelines");
    const auto groups = parallel::make_pipeline_groups(world, stages);
    pipelines_ = groups.pipelines;
    samples_ = options.batch_size / pipelines_ / options.micro_batches;
    step_.samples.assign(static_cast<size_t>(options.micro_batches), samples_);
    first_ = groups.pipeline * samples_ * options.micro_batches;

    BenchNetwork net = network_of(options);
    images_ = net.images;
    labels_ = net.labels;
    const parallel::StagePlan plan{.layers = net.layers(), .first = partition_of(net, stages)};
    stage_ = std::make_shared<nn::Stage>(plan.stage(*net.module, groups.stage));
    optimizer_ = sgd_of(stage_->parameters());
    pipeline_.emplace(
        stage_, groups.chain, [this](const Tensors& inputs) { return stage_->forward(inputs); },
        parallel::PipelineOptions{.replicas = groups.replicas});
  }
  void step() override {
    stage_->zero_grad();
    const auto part = [this](const at::Tensor& of, size_t i) {
      return of.narrow(0, first_ + static_cast<int64_t>(i) * samples_, samples_);
    };
    const auto result = pipeline_->run(
        step_, [&](size_t i) { return Tensors{part(images_, i)}; },
        [&](const Tensors& outputs, size_t i) { return loss_of(outputs.back(), part(labels_, i)); });
    optimizer_->update({});
    ++step_.number;
    sent_ += static_cast<double>(result.sent_bytes);
    if (pipelines_ == 1) return;
    for (const at::Tensor& weight : stage_->parameters()) {
      sent_ += bytes_of_sum(static_cast<double>(weight.nbytes()), pipelines_);
    }
  }
  double bytes() const override { return sent_; }

 private:
  // Stages that take about as long, by the time of each layer's forward on rank 0.
  std::vector<int> partition_of(const BenchNetwork& net, int stages) const {
    const std::vector<nn::Layer> layers = net.layers();
    std::vector<double> costs;
    {
      const c10::AutoGradMode no_grad(false);
      for (int round = 0; round < 2; ++round) {  // the first one prepares kernels
        costs.clear();
        Tensors tensors{net.images.narrow(0, 0, samples_)};
        for (const nn::Layer& layer : layers) {
          const Stopwatch watch;
          tensors = layer.forward(std::move(tensors));
          costs.push_back(watch.seconds());
        }
      }
    }
    const at::Tensor all = at::tensor(costs, at::kDouble);
    whole_->communicator().broadcast(all, 0);
    return parallel::partition({all.const_data_ptr<double>(), costs.size()}, stages);
  }

  std::shared_ptr<World> whole_;
  int pipelines_ = 1;
  int64_t samples_ = 0, first_ = 0;
  at::Tensor images_, labels_;
  std::shared_ptr<nn::Stage> stage_;
  std::unique_ptr<optim::AnyOptimizer> optimizer_;
  std::optional<parallel::Pipeline> pipeline_;
  parallel::PipelineStep step_;
  double sent_ = 0;
};

// The Linear layers at a network's end, divided; all ranks compute what comes before. AlexNet's two wide ones are a
// pair that communicates once a pass; a network's only one is divided by its outputs, which are joined.
class TensorForm final : public Form {
 public:
  TensorForm(const BenchOptions& options, const std::shared_ptr<World>& world)
      : net_(network_of(options)), ranks_(world->size()) {
    layers_ = net_.layers();
    std::vector<torch::nn::Linear> linears;  // the last one first
    while (const auto linear = std::dynamic_pointer_cast<torch::nn::LinearImpl>(layers_.back().modules[0])) {
      linears.emplace_back(linear);
      layers_.pop_back();
    }
    if (linears.empty()) throw ConfigError("--form tensor: ", options.model, " ends with no Linear layer");
    if (linears.size() != 1 && linears.size() != 3) {
      throw BugError("--form tensor divides one Linear layer, or two of three");
    }
    for (const auto& layer : layers_) {
      for (const auto& module : layer.modules) add(module->parameters());
    }
    in_features_ = linears.back()->options.in_features();
    comm::Communicator& comm = world->communicator();
    if (linears.size() == 1) {
      joined_ = parallel::tensor::ColumnParallelLinear(linears[0], comm, /*join=*/true);
      add(joined_->parameters());
    } else {
      wide_ = parallel::tensor::ColumnParallelLinear(linears[2], comm);
      narrow_ = parallel::tensor::RowParallelLinear(linears[1], comm);
      last_ = linears[0];
      for (const Tensors& more : {wide_->parameters(), narrow_->parameters(), last_->parameters()}) add(more);
    }
    net_.module.reset();
    net_.forward = nullptr;
    net_.layers = nullptr;
    optimizer_ = sgd_of(parameters_);
  }
  void step() override {
    for (const at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
    loss_of(scores(), net_.labels).backward();
    optimizer_->update({});
  }
  double bytes() const override { return sent_; }

 private:
  void add(const Tensors& parameters) { parameters_.insert(parameters_.end(), parameters.begin(), parameters.end()); }

  at::Tensor scores() {
    at::Tensor x = nn::run(layers_, net_.images);
    const auto side = std::llround(std::sqrt(static_cast<double>(in_features_) / static_cast<double>(x.size(1))));
    if (x.size(2) != side) x = at::adaptive_avg_pool2d(x, {side, side});
    x = x.flatten(1);
    // In backward a sum over ranks of the inputs' gradients. Forward each rank's part of the outputs goes to all, or
    // the outputs are added up.
    if (joined_) {
      const at::Tensor out = joined_->forward(x);
      sent_ += bytes_of_sum(static_cast<double>(x.nbytes()), ranks_) +
               static_cast<double>(out.nbytes()) * (ranks_ - 1) / ranks_;
      return out;
    }
    const at::Tensor hidden = narrow_->forward(at::relu(wide_->forward(at::dropout(x, 0.5, false))));
    sent_ += bytes_of_sum(static_cast<double>(hidden.nbytes() + x.nbytes()), ranks_);
    return last_->forward(at::relu(hidden));
  }

  BenchNetwork net_;
  int ranks_;
  std::vector<nn::Layer> layers_;
  int64_t in_features_ = 0;
  parallel::tensor::ColumnParallelLinear wide_{nullptr}, joined_{nullptr};
  parallel::tensor::RowParallelLinear narrow_{nullptr};
  torch::nn::Linear last_{nullptr};
  Tensors parameters_;
  std::unique_ptr<optim::AnyOptimizer> optimizer_;
  double sent_ = 0;
};

// All ranks but the last are workers; that one is the server, synchronous.
class ServerForm final : public Form {
 public:
  ServerForm(const BenchOptions& options, const std::shared_ptr<World>& world) {
    const int workers = world->size() - 1;
    if (workers < 1) throw ConfigError("--form server: needs two processes, of which the last one is the server");
    net_ = network_of(options);
    is_server_ = world->rank() == workers;
    std::string address;
    if (is_server_) {
      server_ = std::make_unique<parallel::ParameterServer>(
          net_.module->parameters(),
          parallel::ParameterServerOptions{.workers = workers, .optimizer_options = {{"lr", kLr}, {"momentum", 0.9}}});
      address = server_->address();
      thread_ = std::thread([this] { report_ = server_->serve(); });
    }
    address = comm::gather_texts(world->communicator(), address).back();
    if (is_server_) return;
    const int64_t own = options.batch_size / workers;
    net_.images = net_.images.narrow(0, own * world->rank(), own);
    net_.labels = net_.labels.narrow(0, own * world->rank(), own);
    served_.emplace(net_.module->parameters(), std::vector{address}, parallel::ServedOptions{.worker = world->rank()});
  }
  ~ServerForm() override {
    served_.reset();
    if (thread_.joinable()) thread_.join();
  }
  void step() override {
    if (is_server_) return;
    served_->pull();
    loss_of(net_.forward(net_.images), net_.labels).backward();
    served_->push(net_.images.size(0));
  }
  // Of a worker; the server sends and receives as much as all of them.
  double bytes() const override { return is_server_ ? 0 : static_cast<double>(served_->bytes()) / 2; }

 private:
  BenchNetwork net_;
  bool is_server_ = false;
  std::unique_ptr<parallel::ParameterServer> server_;
  parallel::ServerReport report_;
  std::thread thread_;
  std::optional<parallel::ServedParameters> served_;
};

void check_batch(const BenchOptions& options, int ranks) {
  int parts = options.form == "tensor" ? 1 : options.form == "dp" ? options.replicas : ranks;
  if (options.form == "server") parts = std::max(1, ranks - 1);
  if (options.form == "pipeline") parts = options.micro_batches;
  if (options.form == "pipeline-ddp") parts = 2 * options.micro_batches;
  if (options.batch_size % parts == 0) return;
  throw ConfigError("--batch-size ", options.batch_size, ": --form ", options.form, " divides it by ", parts,
                    "; give a multiple");
}

std::unique_ptr<Form> make_form(const BenchOptions& options, const std::shared_ptr<World>& world) {
  check_batch(options, world->size());
  if (options.form == "dp") {
    if (world->size() > 1) throw ConfigError("--form dp: has replicas in one process; give --replicas, not --nproc");
    return std::make_unique<ReplicasForm>(options);
  }
  if (options.replicas > 1) throw ConfigError("--replicas: goes with --form dp");
  if (options.form == "pipeline" || options.form == "pipeline-ddp") {
    return std::make_unique<PipelineForm>(options, world, options.form == "pipeline-ddp");
  }
  if (options.form == "tensor") return std::make_unique<TensorForm>(options, world);
  if (options.form == "server") return std::make_unique<ServerForm>(options, world);
  return std::make_unique<DataParallelForm>(options, world, options.form == "sharded");
}

}  // namespace

int bench_forms(const BenchOptions& options) {
  const auto world = init();
  comm::Communicator& comm = world->communicator();
  const int cores = usable_cores();
  // Replicas share the threads of their process.
  at::set_num_threads(options.form == "dp" ? std::min(options.replicas, cores) : 1);
  std::unique_ptr<Form> form = make_form(options, world);
  Stopwatch watch;
  form->step();
  watch.restart();
  form->step();
  const double wanted = options.loading.seconds.value_or(4) / over_ranks(watch.seconds(), comm::ReduceOp::kMax, comm);
  const auto steps = std::max(kLeastSteps, static_cast<int64_t>(wanted));
  comm.barrier();
  const double before = form->bytes(), cpu = cpu_seconds();
  std::vector<double> times;
  const Stopwatch all;
  for (int64_t i = 0; i < steps; ++i) {
    watch.restart();
    form->step();
    times.push_back(watch.seconds());
  }
  comm.barrier();
  const double seconds = all.seconds();
  const double sent = over_ranks((form->bytes() - before) / static_cast<double>(steps), comm::ReduceOp::kMax, comm);
  const double busy = over_ranks(cpu_seconds() - cpu, comm::ReduceOp::kSum, comm) / seconds;
  const double memory = over_ranks(megabytes_in("/proc/self/smaps_rollup", "Pss:"), comm::ReduceOp::kSum, comm);
  const double step = over_ranks(median(times), comm::ReduceOp::kMax, comm);
  form.reset();
  comm.barrier();
  if (world->rank() != 0) return 0;
  const int used = std::min(cores, std::max(world->size(), options.replicas));
  const nlohmann::ordered_json row = {
      {"form", options.form},         {"model", options.model}, {"processes", world->size()},
      {"replicas", options.replicas}, {"step_ms", step * 1e3},  {"samples_per_second", options.batch_size / step},
      {"pss_mb_all", memory},         {"sent_mb", sent * 1e-6}, {"idle", std::max(0.0, 1 - busy / used)}};
  print(options.json ? row.dump() + '\n'
                     : cat(options.form, " of ", options.model, ": ", row["step_ms"].get<double>(), " ms a step, ",
                           row["samples_per_second"].get<double>(), " samples/s, ", row["pss_mb_all"].get<double>(),
                           " MB (PSS) together, at most ", row["sent_mb"].get<double>(), " MB sent by one, ",
                           row["idle"].get<double>(), " of the cores idle\n"));
  return 0;
}

}  // namespace lockstep::worker
