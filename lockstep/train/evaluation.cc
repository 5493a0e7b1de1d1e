#include "lockstep/train/evaluation.h"

#include <c10/core/GradMode.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "lockstep/amp/autocast.h"
#include "lockstep/base/error.h"
#include "lockstep/data/byte_tables.h"
#include "lockstep/data/read_batch.h"
#include "lockstep/loop/chunk_sums.h"
#include "lockstep/nn/eval_mode.h"
#include "lockstep/train/memory_format.h"

namespace lockstep::train {
namespace {

// The sums of one chunk: its samples, its loss times them, then the recipe's.
std::vector<double> measure_chunk(const Recipe& recipe, const Model& model, data::Batch batch,
                                  const data::ByteTables& tables, const EvaluationOptions& options) {
  const int64_t count = batch.size();
  batch.for_each_tensor([&](at::Tensor& tensor) { tensor = tensor.to(options.device); });
  tables.apply(batch);
  batch.data() = batch.data().contiguous(memory_format(options.channels_last));
  const amp::AutocastScope autocast(options.amp, options.device.type());
  const at::Tensor output = model.forward(batch);
  if (options.on_output) options.on_output(batch, output);
  const auto samples = static_cast<double>(count);
  std::vector<double> sums = {samples, recipe.loss(output, batch).item<double>() * samples};
  for (const double sum : recipe.measure(output, batch)) sums.push_back(sum);
  return sums;
}

// The evaluation that the sums over all samples make.
Evaluation to_evaluation(const Recipe& recipe, const std::vector<double>& total, int64_t of_samples) {
  const auto samples = static_cast<int64_t>(total[0]);
  return {.loss = total[1] / total[0],
          .samples = samples,
          .left_out = of_samples - samples,
          .metrics = recipe.metrics({total.begin() + 2, total.end()}, samples)};
}

// The first sample, or the first that can be read.
data::Batch first_of(const data::Dataset& data, bool leaves_out) {
  for (int64_t index = 0;; ++index) {
    try {
      return data::read_batch(data, std::vector<int64_t>{index});
    } catch (const DataError&) {
      if (!leaves_out || index + 1 == data.size()) throw;
    }
  }
}

void check_not_empty(const data::Dataset& data) {
  if (data.size() == 0) throw DataError(data.description(), ": no samples to evaluate");
}

}  // namespace

std::string text_of(const nlohmann::ordered_json& metric) {
  if (metric.is_array()) {
    std::string list;
    for (const auto& each : metric) list += (list.empty() ? "" : ", ") + text_of(each);
    return '[' + list + ']';
  }
  if (!metric.is_number_float()) return metric.dump();
  constexpr double kLeast = 1e-3, kMost = 1e6;  // beyond them the form has an exponent
  const double value = metric.get<double>(), size = std::abs(value);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), size == 0 || (size >= kLeast && size < kMost) ? "%.4f" : "%.4g", value);
  return text.data();
}

std::string text_of(const Evaluation& evaluation, const std::string& split) {
  std::string line = cat("loss ", evaluation.loss);
  for (const auto& [name, value] : evaluation.metrics.items()) line += cat(", ", name, ' ', text_of(value));
  const std::string left_out = evaluation.left_out > 0 ? cat(" (", evaluation.left_out, " more can't be read)") : "";
  return cat(line, " on ", evaluation.samples, ' ', split, " samples", left_out);
}

Evaluation evaluate(const Recipe& recipe, const Model& model, const data::Dataset& data, comm::Communicator& comm,
                    const EvaluationOptions& options) {
  check_not_empty(data);
  const nn::EvalMode eval_mode({model.module.get()});
  const c10::AutoGradMode no_grad(false);
  const data::ByteTables tables(data.fields(), options.device);
  const auto total = loop::batch_sums(
      comm, data, options.chunk, options.workers,
      [&](data::Batch batch) {
        auto chunk = measure_chunk(recipe, model, std::move(batch), tables, options);
        if (options.on_chunk) options.on_chunk();
        return chunk;
      },
      options.skipped);
  return to_evaluation(recipe, total, data.size());
}

Evaluation evaluate_sample(const Recipe& recipe, const Model& model, const data::Dataset& data,
                           const EvaluationOptions& options) {
  check_not_empty(data);
  const nn::EvalMode eval_mode({model.module.get()});
  const c10::AutoGradMode no_grad(false);
  const data::ByteTables tables(data.fields(), options.device);
  data::Batch first = first_of(data, options.skipped != nullptr);
  return to_evaluation(recipe, measure_chunk(recipe, model, std::move(first), tables, options), 1);
}

}  // namespace lockstep::train
