#include "lockstep/train/trial_evaluation.h"

#include "lockstep/base/error.h"
#include "lockstep/base/remote_error.h"
#include "lockstep/base/text.h"
#include "lockstep/parallel/lane_generators.h"
#include "lockstep/train/bad_sample_advice.h"
#include "lockstep/train/best_metric.h"
#include "lockstep/train/evaluation.h"

namespace lockstep::train {
namespace {

Evaluation evaluate_first(const Parts& parts) {
  parallel::LaneGenerators generators(*parts.model.module);
  const parallel::LaneGenerators::Kept kept(generators);
  return evaluate_sample(*parts.recipe, parts.model, *parts.data.test,
                         {.channels_last = parts.plan.channels_last,
                          .amp = parts.mixed->policy(),
                          .device = parts.device,
                          .skipped = parts.skipped.get()});
}

std::string names_of(const nlohmann::ordered_json& metrics) {
  std::string names = "loss";
  for (const auto& [name, value] : metrics.items()) {
    if (value.is_number()) names += cat(", ", name);
  }
  return names;
}

}  // namespace

void try_evaluation(const Parts& parts) {
  const std::string recipe = cat("recipe ", parts.recipe->name(), ": ");
  if (parts.data.test == nullptr) {
    throw ConfigError(recipe,
                      "open_data() gives no test data, on which every run ends; give the validation data twice");
  }
  const auto failed = [&](const char* what) {
    return cat(recipe, "its evaluation fails, tried on one test sample before the run: ", what);
  };
  Evaluation evaluation;
  try {
    with_advice(parts, [&] { evaluation = evaluate_first(parts); });
  } catch (const Error& error) {
    throw_error(error.exit_code(), failed(error.what()));
  } catch (const std::exception& error) {
    throw BugError(failed(first_line(error.what()).c_str()));
  }
  const BestMetric best(*parts.recipe);
  if (best.is_in(evaluation)) return;
  throw ConfigError(recipe, "best_by() is \"", best.name, "\", which is no number of an evaluation; there are ",
                    names_of(evaluation.metrics));
}

}  // namespace lockstep::train
