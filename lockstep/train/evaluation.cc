#include "lockstep/train/evaluation.h"

#include <c10/core/GradMode.h>

#include <optional>
#include <vector>

#include "lockstep/amp/autocast.h"
#include "lockstep/base/error.h"
#include "lockstep/data/chunk_reader.h"
#include "lockstep/data/read_batch.h"
#include "lockstep/loop/chunk_sums.h"
#include "lockstep/loop/eval_mode.h"
#include "lockstep/train/memory_format.h"

namespace lockstep::train {
namespace {

// The sums of one chunk: its loss times its samples, then the recipe's.
std::vector<double> measure_chunk(const Recipe& recipe, const Model& model, data::Batch batch,
                                  const EvaluationOptions& options) {
  const int64_t count = batch.size();
  batch.for_each_tensor([&](at::Tensor& tensor) { tensor = tensor.to(options.device); });
  batch.data() = batch.data().contiguous(memory_format(options.channels_last));
  const amp::AutocastScope autocast(options.amp, options.device.type());
  const at::Tensor output = model.forward(batch);
  std::vector<double> sums = {recipe.loss(output, batch).item<double>() * static_cast<double>(count)};
  for (const double sum : recipe.measure(output, batch)) sums.push_back(sum);
  return sums;
}

// The evaluation that the sums over all samples make.
Evaluation to_evaluation(const Recipe& recipe, const std::vector<double>& total, int64_t samples) {
  return {.loss = total[0] / static_cast<double>(samples),
          .samples = samples,
          .metrics = recipe.metrics({total.begin() + 1, total.end()}, samples)};
}

void check_not_empty(const data::Dataset& data) {
  if (data.size() == 0) throw DataError(data.description(), ": no samples to evaluate");
}

}  // namespace

Evaluation evaluate(const Recipe& recipe, const Model& model, const data::Dataset& data, comm::Communicator& comm,
                    const EvaluationOptions& options) {
  check_not_empty(data);
  const loop::EvalMode eval_mode({model.module.get()});
  const c10::AutoGradMode no_grad(false);
  const loop::OwnSamples own = loop::own_samples(comm, data.size(), options.chunk);
  std::optional<data::ChunkReader> reader;  // made where its errors are all ranks'
  const auto total = loop::chunk_sums(comm, data.size(), options.chunk, [&](int64_t /*first*/, int64_t /*count*/) {
    if (!reader) reader.emplace(data, own.first, own.last, options.chunk, options.workers);
    auto chunk = measure_chunk(recipe, model, reader->next(), options);
    if (options.on_chunk) options.on_chunk();
    return chunk;
  });
  return to_evaluation(recipe, total, data.size());
}

Evaluation evaluate_sample(const Recipe& recipe, const Model& model, const data::Dataset& data,
                           const EvaluationOptions& options) {
  check_not_empty(data);
  const loop::EvalMode eval_mode({model.module.get()});
  const c10::AutoGradMode no_grad(false);
  const std::vector<int64_t> first = {0};
  return to_evaluation(recipe, measure_chunk(recipe, model, data::read_batch(data, first), options), 1);
}

}  // namespace lockstep::train
