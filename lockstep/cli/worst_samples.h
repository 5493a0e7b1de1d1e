// The samples on which a network does worst, for `eval --worst N --out sheet.png`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/data/skipped_samples.h"
#include "lockstep/predict/sample_scores.h"
#include "lockstep/predict/worst_sheet.h"
#include "lockstep/train/evaluation.h"
#include "lockstep/world/world.h"

namespace lockstep::cli {

// Returns the `most` worst samples of all ranks, alike on all ranks and at any number of them. `scores` are of the
// samples that this rank has computed, of an evaluation by chunks of `chunk`; `skipped` are those that were left out,
// or null. A collective.
std::vector<predict::RankedSample> worst_samples(const predict::SampleScores& scores, int64_t most,
                                                 const data::Dataset& data, int64_t chunk,
                                                 const data::SkippedSamples* skipped, World& world);

// Reads these samples again, computes them one by one as the evaluation did, and draws them. On this rank alone. Throws
// DataError for samples that can't be read any more, and as WorstSheet::add().
predict::WorstSheet draw(const std::vector<predict::RankedSample>& worst, const train::Recipe& recipe,
                         const train::Model& model, const std::shared_ptr<const data::Dataset>& data,
                         train::EvaluationOptions options);

}  // namespace lockstep::cli
