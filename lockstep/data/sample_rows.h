// The memory of a batch, with a view of each of its rows.
#pragma once

#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <functional>
#include <span>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

// While it lives, the tensors that its thread makes and writes are plain: part of no graph, and none of inference mode.
class PlainTensors {
  c10::InferenceMode off_{false};
  c10::AutoGradMode none_{false};
};

// Makes the memory of a batch's tensor, undefined values of this shape, dtype and layout on the CPU. Null: libtorch's
// allocator. Any thread calls it, one at a time for each loader.
using BatchMemory = std::function<at::Tensor(at::IntArrayRef shape, at::ScalarType dtype, at::MemoryFormat format)>;

// Tensors of some rows for the fields of a data set. What they hold is undefined until the rows are written. Threads
// may write rows of their own at once.
class SampleRows {
 public:
  SampleRows() = default;
  SampleRows(const std::vector<Field>& fields, int64_t rows, const BatchMemory& memory = {});

  const Batch& batch() const { return batch_; }
  // The views of row `row`, one for each field.
  std::span<const at::Tensor> row(int64_t row) const {
    return std::span(views_).subspan(static_cast<size_t>(row) * batch_.tensors.size(), batch_.tensors.size());
  }

 private:
  Batch batch_;
  std::vector<at::Tensor> views_;  // row after row
};

// The bytes that so many rows of the fields take.
int64_t bytes_of(const std::vector<Field>& fields, int64_t rows);

}  // namespace lockstep::data
