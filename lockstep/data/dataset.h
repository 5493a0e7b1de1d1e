// The interface of all data sets: samples by number, as tensors ready for a model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep::data {

// A batch of samples. Row i of every tensor belongs to the i-th index asked for.
struct Batch {
  at::Tensor data;  // [n, …sample_shape()], contiguous (images: float32 [n, channels, height, width], from 0 to 1)
  at::Tensor
      target;  // int64 classes [n] or of each pixel [n, height, width]; or values float32 [n, …]; may be undefined
  std::map<std::string, at::Tensor> more = {};  // further tensors of any dtype by name: "mask", "weight"

  int64_t size() const { return data.size(0); }
  // One of `more`. Throws ConfigError that lists their names for any other name.
  const at::Tensor& operator[](const std::string& name) const;
  // Calls visit(at::Tensor&) for every tensor that is defined.
  template <typename Visit>
  void for_each_tensor(const Visit& visit) {
    if (data.defined()) visit(data);
    if (target.defined()) visit(target);
    for (auto& [name, tensor] : more) visit(tensor);
  }
};

// A set of samples, numbered from 0. Any number of threads may call it at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;

  // Returns the samples of these numbers in this order. Repeats are fine; an empty list gives tensors of 0 rows. The
  // same (indices, epoch) give the same bits in every process; `epoch` only matters where samples are augmented. Works
  // on the calling thread alone. Throws DataError for a damaged sample, BugError for a number out of range.
  virtual Batch batch(std::span<const int64_t> indices, uint32_t epoch) const = 0;

  // The shape of one sample, without the batch's dimension: {1, 28, 28}.
  virtual std::vector<int64_t> sample_shape() const = 0;

  // The number of classes of the targets; 0: they are none, as in a regression.
  virtual int64_t classes() const { return 0; }

  // A line for a run's header: what the data is and where it comes from.
  virtual std::string description() const = 0;
};

// The parts of one data set.
struct Splits {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;
  std::shared_ptr<const Dataset> validation;  // null where there is none
};

// Throws BugError unless all indices lie in [0, size).
void check_indices(std::span<const int64_t> indices, int64_t size);

}  // namespace lockstep::data
