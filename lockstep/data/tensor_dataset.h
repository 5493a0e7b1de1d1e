// A data set of tensors that are in memory, as torch.utils.data.TensorDataset.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

struct TensorDatasetOptions {
  int64_t classes = 0;  // of an int64 target; 0: they are counted, as the largest value and those below it
};

// Row i of every tensor is sample i:
//   TensorDataset(points, labels)
//   TensorDataset(images, masks, {{"weight", weights}})
//   TensorDataset(images, labels, {.classes = 10})
// A batch has copies of the rows; the tensors share their memory with the caller's, who does not write there any more.
class TensorDataset final : public Dataset {
 public:
  // `data` is [samples, …], `target` (if defined) and `more` too, each of any dtype, on the CPU. The number of classes
  // is to be said where the last ones may have no sample here. Throws ConfigError for a tensor without samples' rows,
  // of another number of rows, or on another device, for classes of a target that is not int64, and for a target that
  // is none of them; negative values, which losses leave out, are no class.
  explicit TensorDataset(at::Tensor data, at::Tensor target = {}, std::map<std::string, at::Tensor> more = {},
                         const TensorDatasetOptions& options = {});
  TensorDataset(at::Tensor data, at::Tensor target, const TensorDatasetOptions& options);

  int64_t size() const override { return all_.size(); }
  std::vector<Field> fields() const override;
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, ReadStats& stats) const override;
  std::string fingerprint() const override;  // of all names, dtypes, sizes and bytes
  std::string description() const override;
  int64_t classes() const override { return classes_; }
  int64_t class_of(int64_t index) const override;

 private:
  Batch all_;  // contiguous
  int64_t classes_ = 0;
};

}  // namespace lockstep::data
