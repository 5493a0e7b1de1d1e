// bench pipeline: a network of equal layers in stages, one on each process, by both schedules and several numbers of
// micro-batches: how long a step takes, how idle the stages are beside what theory says, and what they keep. Theory is
// of equal stages: that of the stage that computes longest is compared with it.
#include <ATen/Parallel.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>
#include <vector>

#include "commands.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/parallel/options/lanes.h"
#include "lockstep/parallel/pipeline/pipeline.h"
#include "median.h"
#include "over_ranks.h"

namespace lockstep::worker {
namespace {

using parallel::Pipeline;
using parallel::PipelineResult;
using parallel::PipelineSchedule;
using Tensors = Pipeline::Tensors;

constexpr int64_t kLeastSteps = 3;  // that are measured
const std::vector<int> kMicroBatches = {1, 2, 4, 8, 16};

const char* name_of(PipelineSchedule schedule) { return schedule == PipelineSchedule::kGPipe ? "gpipe" : "1f1b"; }

torch::nn::Sequential make_net(const apps::BenchPipelineOptions& asked, int stages) {
  if (asked.layers < stages) throw ConfigError("--layers ", asked.layers, ": ", stages, " stages want one each");
  torch::nn::Sequential net;
  for (int layer = 0; layer < asked.layers; ++layer) {
    net->push_back(torch::nn::Linear(asked.width, asked.width));
    net->push_back(torch::nn::ReLU());
  }
  return net;
}

// Computes a stage. Where layers have a time by the clock, as on devices of their own, it sleeps for them, forward and
// backward.
at::Tensor compute(torch::nn::Sequential& stage, const at::Tensor& inputs, double layer_ms) {
  at::Tensor outputs = stage->forward(inputs);
  if (layer_ms == 0) return outputs;
  const std::chrono::duration<double, std::milli> asleep(layer_ms * static_cast<double>(stage->size() / 2));
  std::this_thread::sleep_for(asleep);
  outputs.register_hook([asleep](const at::Tensor&) { std::this_thread::sleep_for(2 * asleep); });
  return outputs;
}

double idle_of(const PipelineResult& result) {
  double computing = 0;
  for (const auto& span : result.spans) computing += static_cast<double>(span.end_ns - span.begin_ns) * 1e-9;
  return 1 - computing / result.seconds;
}

// The spans of all stages on rank 0, as the events of a Chrome trace: each row of the bench is a process of it, each
// stage a thread.
void add_to_trace(nlohmann::ordered_json& events, const PipelineResult& result, int row, const std::string& name,
                  comm::Communicator& comm) {
  std::vector<int64_t> numbers;
  for (const auto& span : result.spans) {
    for (const int64_t number :
         {int64_t{span.action.backward}, int64_t{span.action.micro_batch}, span.begin_ns, span.end_ns})
      numbers.push_back(number);
  }
  const at::Tensor own = at::tensor(numbers, at::kLong).view({-1, 4});
  const auto all = comm.all_gather_uneven(own);
  if (comm.rank() != 0) return;
  events.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", row}, {"args", {{"name", name}}}});
  for (size_t stage = 0; stage < all.size(); ++stage) {
    const auto spans = all[stage].accessor<int64_t, 2>();
    for (int64_t i = 0; i < spans.size(0); ++i) {
      const char* const what = spans[i][0] != 0 ? "backward" : "forward";
      events.push_back({{"ph", "X"},
                        {"name", cat(what, ' ', spans[i][1])},
                        {"cat", what},
                        {"pid", row},
                        {"tid", stage},
                        {"ts", static_cast<double>(spans[i][2]) * 1e-3},
                        {"dur", static_cast<double>(spans[i][3] - spans[i][2]) * 1e-3}});
    }
  }
}

// Measures steps of one schedule and number of micro-batches. Returns what rank 0 prints.
class PipelineBench {
 public:
  PipelineBench(const BenchOptions& options, std::shared_ptr<World> world)
      : options_(options), world_(std::move(world)), asked_(options.pipeline) {}

  nlohmann::ordered_json measure(PipelineSchedule schedule, int micro_batches) {
    comm::Communicator& comm = world_->communicator();
    at::manual_seed(1);
    torch::nn::Sequential stage = parallel::stage_of(make_net(asked_, world_->size()), world_->size(), world_->rank());
    const auto optimizer = optim::make_optimizer("sgd", stage->parameters(), {{"lr", 1e-3}});
    size_t kept = 0;  // bytes of tensors after a forward, at most
    const auto forward = [&](const Tensors& inputs) {
      Tensors outputs{compute(stage, inputs[0], asked_.layer_ms)};
      kept = std::max(kept, world_->pool().stats().in_use);
      return outputs;
    };
    Pipeline pipeline(stage.ptr(), world_, forward, {.schedule = schedule, .recompute = asked_.recompute});
    // Its gradient makes the first stage's backward as long as the others'.
    const at::Tensor input = at::rand({asked_.rows, asked_.width}).requires_grad_();
    int64_t number = 0;
    const auto step = [&] {
      stage->zero_grad();
      input.mutable_grad().reset();
      auto result = pipeline.run(
          {.number = number++, .samples = std::vector<int64_t>(static_cast<size_t>(micro_batches), asked_.rows)},
          [&](size_t) { return Tensors{input}; },
          [](const Tensors& outputs, size_t) { return outputs[0].square().mean(); });
      optimizer->update({});
      return result;
    };
    step();
    stage->zero_grad();
    input.mutable_grad().reset();
    const size_t before = world_->pool().stats().in_use;
    kept = before;
    std::vector<double> seconds, idle;
    const Stopwatch watch;
    for (bool goes_on = true; goes_on;) {
      last_ = step();
      seconds.push_back(last_.seconds);
      idle.push_back(idle_of(last_));
      const bool done = std::ssize(seconds) >= kLeastSteps && watch.seconds() > options_.loading.seconds.value_or(1);
      goes_on = over_ranks(done ? 1 : 0, comm::ReduceOp::kMax, comm) == 0;
    }
    const int stages = world_->size();
    const double activations = over_ranks(static_cast<double>(kept - before), comm::ReduceOp::kMax, comm);
    const double mean_idle = over_ranks(median(idle), comm::ReduceOp::kSum, comm) / stages;
    const double least_idle = over_ranks(median(idle), comm::ReduceOp::kMin, comm);
    const double sent = over_ranks(static_cast<double>(last_.sent_bytes), comm::ReduceOp::kSum, comm);
    const double held = over_ranks(last_.most_held, comm::ReduceOp::kMax, comm);
    return {{"schedule", name_of(schedule)},
            {"stages", stages},
            {"micro_batches", micro_batches},
            {"step_ms", 1e3 * over_ranks(median(seconds), comm::ReduceOp::kMax, comm)},
            {"idle", least_idle},
            {"mean_idle", mean_idle},
            {"bubble", static_cast<double>(stages - 1) / (micro_batches + stages - 1)},
            {"most_held", held},
            {"activations_mb", activations * 1e-6},
            {"sent_mb", sent * 1e-6}};
  }

  const PipelineResult& last() const { return last_; }  // of the steps that were measured

 private:
  const BenchOptions& options_;
  std::shared_ptr<World> world_;
  const apps::BenchPipelineOptions& asked_;
  PipelineResult last_;
};

std::string table(const nlohmann::ordered_json& rows) {
  std::string text =
      "schedule  stages  micro-batches    step ms  bubble  idle (busiest, mean)  kept  their MB  sent MB\n";
  for (const auto& row : rows) {
    std::array<char, 120> line{};
    std::snprintf(line.data(), line.size(),
                  "%-8s  %6d  %13d  %9.1f  %4.1f %%  %10.1f %%  %4.1f %%  %4.0f  %8.1f  %7.1f\n",
                  row["schedule"].get<std::string>().c_str(), row["stages"].get<int>(), row["micro_batches"].get<int>(),
                  row["step_ms"].get<double>(), 100 * row["bubble"].get<double>(), 100 * row["idle"].get<double>(),
                  100 * row["mean_idle"].get<double>(), row["most_held"].get<double>(),
                  row["activations_mb"].get<double>(), row["sent_mb"].get<double>());
    text += line.data();
  }
  return text;
}

}  // namespace

int bench_pipeline(const BenchOptions& options) {
  at::set_num_threads(1);
  const auto world = init();
  PipelineBench bench(options, world);
  auto rows = nlohmann::ordered_json::array(), events = nlohmann::ordered_json::array();
  const int asked = options.pipeline.micro_batches;
  for (const int micro_batches : asked > 0 ? std::vector<int>{asked} : kMicroBatches) {
    for (const auto schedule : {PipelineSchedule::kGPipe, PipelineSchedule::k1F1B}) {
      rows.push_back(bench.measure(schedule, micro_batches));
      const std::string name = cat(name_of(schedule), ", ", micro_batches, " micro-batches");
      const int row = static_cast<int>(rows.size());
      if (!options.pipeline.trace.empty()) add_to_trace(events, bench.last(), row, name, world->communicator());
    }
  }
  if (world->rank() != 0) return 0;
  if (const std::string& path = options.pipeline.trace; !path.empty()) {
    std::ofstream file(path);
    file << nlohmann::ordered_json{{"traceEvents", events}}.dump() << '\n';
    if (!file.flush()) throw IoError("--trace ", path, ": can't be written: ", errno_text(errno));
  }
  print(options.json ? rows.dump() + '\n' : table(rows));
  return 0;
}

}  // namespace lockstep::worker
