// The metric that decides best.pt and --early-stop.
#pragma once

#include <limits>
#include <string>

#include "lockstep/train/evaluation.h"
#include "lockstep/train/recipe.h"

namespace lockstep::train {

struct BestMetric {
  std::string name;
  bool lower_is_better = false;

  explicit BestMetric(const Recipe& recipe) : name(recipe.best_by()), lower_is_better(recipe.lower_is_better()) {}

  // Returns words for a checkpoint and for people: "accuracy, more is better".
  std::string text() const { return name + (lower_is_better ? ", less is better" : ", more is better"); }
  // Returns whether an evaluation has a number of this name.
  bool is_in(const Evaluation& evaluation) const {
    return name == "loss" || (evaluation.metrics.contains(name) && evaluation.metrics[name].is_number());
  }
  // Returns the metric's value in an evaluation that has it; "loss" is the evaluation's loss.
  double in(const Evaluation& evaluation) const {
    return name == "loss" ? evaluation.loss : evaluation.metrics.at(name).get<double>();
  }
  // Returns whether a value is better than another; NaN never is.
  bool is_better(double value, double than) const { return lower_is_better ? value < than : value > than; }
  // Returns the value that stands for no evaluation so far: none is better than another value.
  double worst() const {
    return lower_is_better ? std::numeric_limits<double>::max() : std::numeric_limits<double>::lowest();
  }
};

}  // namespace lockstep::train
