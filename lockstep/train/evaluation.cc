#include "lockstep/train/evaluation.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

#include "lockstep/amp/autocast.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/blocks.h"
#include "lockstep/train/memory_format.h"

namespace lockstep::train {
namespace {

constexpr int64_t kMostSums = 64;

class EvalMode {
 public:
  explicit EvalMode(torch::nn::Module& module) : module_(module), training_(module.is_training()) { module_.eval(); }
  ~EvalMode() { module_.train(training_); }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  torch::nn::Module& module_;
  bool training_;
};

// The sums of one chunk: its loss times its samples, then the recipe's.
std::vector<double> measure_chunk(const Recipe& recipe, const Model& model, const data::Dataset& data, int64_t first,
                                  int64_t count, const EvaluationOptions& options) {
  std::vector<int64_t> indices(static_cast<size_t>(count));
  std::iota(indices.begin(), indices.end(), first);
  const data::Batch batch = data.batch(indices, 0);
  const at::Tensor target = batch.target.to(options.device);
  const amp::AutocastScope autocast(options.amp, options.device.type());
  const at::Tensor input = batch.data.to(options.device).contiguous(memory_format(options.channels_last));
  const at::Tensor output = model.forward(input);
  std::vector<double> sums = {recipe.loss(output, target).item<double>() * static_cast<double>(count)};
  for (const double sum : recipe.measure(output, target)) sums.push_back(sum);
  if (std::ssize(sums) > kMostSums) throw BugError("evaluation: ", sums.size(), " sums, not at most ", kMostSums);
  return sums;
}

}  // namespace

Evaluation evaluate(const Recipe& recipe, const Model& model, const data::Dataset& data, comm::Communicator& comm,
                    const EvaluationOptions& options) {
  const EvalMode eval_mode(*model.module);
  const c10::AutoGradMode no_grad(false);
  const int64_t chunks = (data.size() + options.chunk - 1) / options.chunk;
  const comm::Slice own = comm::slice_of(chunks, comm.rank(), comm.size());
  const at::Tensor table = at::zeros({chunks, kMostSums}, at::kDouble);
  for (int64_t chunk = own.first; chunk < own.last; ++chunk) {
    const int64_t first = chunk * options.chunk;
    const auto sums = measure_chunk(recipe, model, data, first, std::min(options.chunk, data.size() - first), options);
    std::copy(sums.begin(), sums.end(), table.mutable_data_ptr<double>() + chunk * kMostSums);
  }
  comm.all_reduce(table, comm::ReduceOp::kSum);  // every row is one rank's, and zero elsewhere
  std::vector<double> total(kMostSums, 0.0);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    for (int64_t i = 0; i < kMostSums; ++i) {
      total[static_cast<size_t>(i)] += table.const_data_ptr<double>()[chunk * kMostSums + i];
    }
  }
  const std::vector<double> sums(total.begin() + 1, total.end());
  return {.loss = total[0] / static_cast<double>(std::max<int64_t>(1, data.size())),
          .samples = data.size(),
          .metrics = recipe.metrics(sums, data.size())};
}

}  // namespace lockstep::train
