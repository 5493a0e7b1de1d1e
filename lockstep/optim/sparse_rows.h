// The part of a parameter that a sparse gradient reaches, as of torch::nn::Embedding with sparse = true.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace lockstep::optim {

// "Row" is one index of the gradient's sparse dimensions; an embedding's is a row of its table.
class SparseRows {
 public:
  // Adds up equal rows of a COO gradient.
  explicit SparseRows(const at::Tensor& gradient);

  const at::Tensor& values() const { return values_; }  // [rows, …]
  // These rows of a tensor of the parameter's shape: [rows, …], a copy.
  at::Tensor of(const at::Tensor& whole) const;
  void write(const at::Tensor& rows, const at::Tensor& whole) const;

 private:
  c10::List<std::optional<at::Tensor>> indices_;
  at::Tensor values_;
};

}  // namespace lockstep::optim
