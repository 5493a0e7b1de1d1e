#include "lockstep/cli/worst_samples.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "lockstep/data/subset.h"
#include "lockstep/loop/chunk_sums.h"

namespace lockstep::cli {
namespace {

std::vector<int64_t> indices_of(const data::SkippedSamples* skipped) {
  std::vector<int64_t> indices;
  if (skipped == nullptr) return indices;
  for (const data::BadSample& each : skipped->all()) indices.push_back(each.index);
  std::sort(indices.begin(), indices.end());
  return indices;
}

// All ranks' lists, one after the other. A collective.
std::vector<predict::RankedSample> gathered(const std::vector<predict::RankedSample>& own, int64_t most, World& world) {
  // A row: the index plus 1, or 0 where there is none, and the score. A rank's rows are zero elsewhere.
  const at::Tensor table = at::zeros({world.size(), most, 2}, at::kDouble);
  auto rows = table.accessor<double, 3>();
  for (size_t i = 0; i < own.size(); ++i) {
    rows[world.rank()][static_cast<int64_t>(i)][0] = static_cast<double>(own[i].index + 1);
    rows[world.rank()][static_cast<int64_t>(i)][1] = own[i].score;
  }
  world.communicator().all_reduce(table, comm::ReduceOp::kSum);
  std::vector<predict::RankedSample> all;
  for (int64_t rank = 0; rank < world.size(); ++rank) {
    for (int64_t i = 0; i < most && rows[rank][i][0] > 0; ++i) {
      all.push_back({.index = static_cast<int64_t>(rows[rank][i][0]) - 1, .score = rows[rank][i][1]});
    }
  }
  return all;
}

}  // namespace

std::vector<predict::RankedSample> worst_samples(const predict::SampleScores& scores, int64_t most,
                                                 const data::Dataset& data, int64_t chunk,
                                                 const data::SkippedSamples* skipped, World& world) {
  const loop::OwnSamples own = loop::own_samples(world.communicator(), data.size(), chunk);
  const auto here = predict::worst_of(predict::ranked(scores.all(), own.first, indices_of(skipped)), most);
  return predict::worst_of(gathered(here, most, world), most);
}

predict::WorstSheet draw(const std::vector<predict::RankedSample>& worst, const train::Recipe& recipe,
                         const train::Model& model, const std::shared_ptr<const data::Dataset>& data,
                         train::EvaluationOptions options) {
  predict::WorstSheet sheet(static_cast<int>(worst.size()), recipe.makes_masks(), data->class_names());
  options.skipped = nullptr;
  for (const predict::RankedSample& sample : worst) {
    options.on_output = [&](const data::Batch& batch, const at::Tensor& output) {
      sheet.add(sample, data->name_of(sample.index), batch.data()[0], batch.target()[0], output[0]);
    };
    evaluate_sample(recipe, model, *data::subset(data, {sample.index}, ""), options);
  }
  return sheet;
}

}  // namespace lockstep::cli
