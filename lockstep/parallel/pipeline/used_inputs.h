// Whether a stage of a pipeline uses what the stage before it has computed with a graph.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace lockstep::parallel {

// An input that neither an output nor the loss depends on would take its gradient away in silence, and the weights
// behind it would stay untrained. One that has been used once counts as used: a stage may leave one out at times. One
// thread.
class UsedInputs {
 public:
  struct Unused {
    size_t input = 0;
    std::vector<int64_t> sizes = {};
  };

  // A run of several micro-batches begins.
  void begin() { unused_.clear(); }
  // Looks at a micro-batch's inputs, outputs and loss, which is undefined on all stages but the last. It walks the
  // graph as long as some input has not been used.
  void note(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& outputs, const at::Tensor& loss);
  // The first input with a graph that this run has left out, and none has used.
  std::optional<Unused> unused() const;

 private:
  std::vector<bool> used_;
  std::map<size_t, std::vector<int64_t>> unused_;  // sizes, by input
};

}  // namespace lockstep::parallel
