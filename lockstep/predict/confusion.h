// Which classes a network takes for which: the confusion matrix of an evaluation.
#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::predict {

// Counts samples, or pixels of masks. One thread.
class Confusion {
 public:
  // Adds what a network said, scores [N, classes, …] (one class: of a sigmoid), and the true classes [N, …], int64.
  // Throws ConfigError where these are no classes' scores and no classes.
  void add(const at::Tensor& scores, const at::Tensor& target);

  // int64 [classes, classes]: a row for each true class, a column for each predicted one. Sums of several ranks' add
  // up. Undefined before the first.
  const at::Tensor& counts() const { return counts_; }

 private:
  at::Tensor counts_;
};

// The matrix as people read it: whole up to 12 classes, else the 20 pairs of classes that are most often mixed up.
// `names` are the classes'; with none they have numbers.
std::string confusion_text(const at::Tensor& counts, const std::vector<std::string>& names);
nlohmann::json confusion_json(const at::Tensor& counts);

}  // namespace lockstep::predict
