// Named tensors that belong together: a batch of samples.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::data {

// Row i of every tensor belongs to the batch's i-th sample. The data set says which tensors there are
// (Dataset::fields).
class Batch {
 public:
  using Named = std::pair<std::string, at::Tensor>;

  Batch() = default;
  Batch(std::initializer_list<Named> all) : tensors(all) {}  // {{"data", images}, {"target", classes}}
  // A batch of "data" and "target". An undefined tensor is left out.
  static Batch of(at::Tensor data, at::Tensor target = {});

  int64_t size() const { return tensors.empty() ? 0 : tensors.front().second.size(0); }  // rows
  bool has(std::string_view name) const;
  // Throws ConfigError that lists the names for one that is not there.
  const at::Tensor& operator[](std::string_view name) const;
  at::Tensor& operator[](std::string_view name);
  // The tensors that most data sets have: [n, …], images float32 [n, channels, height, width] from 0 to 1; and int64
  // classes [n], or of each pixel [n, height, width], or values float32 [n, …].
  const at::Tensor& data() const { return (*this)["data"]; }
  at::Tensor& data() { return (*this)["data"]; }
  const at::Tensor& target() const { return (*this)["target"]; }
  at::Tensor& target() { return (*this)["target"]; }
  // The target where it is a class for each sample, int64 [n]: what counting right answers needs. Throws ConfigError
  // for others, such as the probabilities of mixed batches (mix.h).
  const at::Tensor& class_target() const;

  // Calls visit(at::Tensor&) for every tensor.
  template <typename Visit>
  void for_each_tensor(const Visit& visit) {
    for (auto& [name, tensor] : tensors) visit(tensor);
  }

  // Removes these rows, which ascend, by a copy of the others.
  void drop_rows(const std::vector<int64_t>& rows);

  std::vector<Named> tensors;  // in the order of Dataset::fields()
};

}  // namespace lockstep::data
