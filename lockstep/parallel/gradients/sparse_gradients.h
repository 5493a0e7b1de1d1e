// The sparse gradients of a step. They are in no bucket: each lane's rows are kept until all lanes of this rank are
// done, and the rows of all ranks are folded at the step's end.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/gradients/named_parameter.h"
#include "lockstep/parallel/gradients/sparse_fold.h"

namespace lockstep::parallel {

// Parameters are numbered as in the list that the constructor gets, of which only the sparse ones count here.
class SparseGradients {
 public:
  explicit SparseGradients(const std::vector<NamedParameter>& parameters);

  bool empty() const { return entries_.empty(); }  // whether no parameter has sparse gradients

  // Keeps the gradient of lane `lane`; an undefined one has no rows. Throws ConfigError for a layout that rows_of()
  // does not take, BugError for a lane that has already given its gradient.
  void push(size_t parameter, size_t lane, const at::Tensor& gradient);
  bool has(size_t parameter, size_t lane) const { return entries_.at(parameter).lanes.contains(lane); }
  size_t lanes(size_t parameter) const { return entries_.at(parameter).lanes.size(); }  // kept now

  // Multiplies this rank's gradients by `scale`, folds them over ranks, and writes each sum to `gradients[parameter]`.
  // Nothing is kept afterwards. A collective.
  void fold(double scale, comm::Communicator& comm, std::vector<at::Tensor>& gradients);
  void clear() noexcept;  // forgets what is kept

  // Both read the parameters' .grad, where it is defined.
  double add_square_sums(double sum) const;        // returns `sum` plus each parameter's sum of squares, one by one
  std::optional<size_t> first_not_finite() const;  // the first parameter with an element that is not finite

 private:
  struct Entry {
    NamedParameter parameter;
    std::map<size_t, SparseRows> lanes;
  };

  std::map<size_t, Entry> entries_;  // by parameter
};

}  // namespace lockstep::parallel
