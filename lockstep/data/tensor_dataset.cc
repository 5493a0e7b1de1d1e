#include "lockstep/data/tensor_dataset.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

// The tensor as rows in one piece of memory.
at::Tensor rows_of(const at::Tensor& tensor, const std::string& name, int64_t samples) {
  if (tensor.dim() == 0)
    throw ConfigError("TensorDataset: ", name, " is one number; its first dimension is the samples");
  if (!tensor.is_cpu()) {
    throw ConfigError("TensorDataset: ", name, " is on ", tensor.device(), "; give it in the CPU's memory: .cpu()");
  }
  if (tensor.size(0) != samples) {
    throw ConfigError("TensorDataset: ", name, " has ", tensor.size(0), " rows, and data has ", samples,
                      "; each has one for every sample");
  }
  return tensor.detach().resolve_conj().resolve_neg().contiguous();
}

// By hand, for index_select may use threads.
at::Tensor copied_rows(const at::Tensor& from, std::span<const int64_t> indices) {
  std::vector<int64_t> shape = from.sizes().vec();
  shape[0] = std::ssize(indices);
  at::Tensor rows = at::empty(shape, from.options());
  if (from.numel() == 0) return rows;
  const auto bytes = static_cast<size_t>(from.numel() / from.size(0) * from.element_size());
  const auto* source = static_cast<const char*>(from.const_data_ptr());
  auto* target = static_cast<char*>(rows.mutable_data_ptr());
  for (size_t i = 0; i < indices.size(); ++i) {
    std::memcpy(target + i * bytes, source + static_cast<size_t>(indices[i]) * bytes, bytes);
  }
  return rows;
}

int64_t classes_in(const at::Tensor& target) {
  if (!target.defined() || target.scalar_type() != at::kLong || target.numel() == 0) return 0;
  const auto* values = target.const_data_ptr<int64_t>();
  return std::max<int64_t>(0, *std::max_element(values, values + target.numel()) + 1);
}

}  // namespace

TensorDataset::TensorDataset(at::Tensor data, at::Tensor target, std::map<std::string, at::Tensor> more)
    : all_{.data = std::move(data), .target = std::move(target), .more = std::move(more)} {
  if (!all_.data.defined()) throw ConfigError("TensorDataset: data is an undefined tensor");
  const int64_t samples = all_.data.dim() > 0 ? all_.data.size(0) : 0;
  all_.data = rows_of(all_.data, "data", samples);
  if (all_.target.defined()) all_.target = rows_of(all_.target, "target", samples);
  for (auto& [name, tensor] : all_.more) {
    if (!tensor.defined()) throw ConfigError("TensorDataset: ", name, " is an undefined tensor");
    tensor = rows_of(tensor, name, samples);
  }
  classes_ = classes_in(all_.target);
}

Batch TensorDataset::batch(std::span<const int64_t> indices, uint32_t) const {
  check_indices(indices, size());
  Batch batch = all_;
  batch.for_each_tensor([&](at::Tensor& tensor) { tensor = copied_rows(tensor, indices); });
  return batch;
}

std::string TensorDataset::description() const {
  std::string names = "tensors data";
  if (all_.target.defined()) names += ", target";
  for (const auto& [name, tensor] : all_.more) names += cat(", ", name);
  return cat(names, ", ", size(), " samples");
}

}  // namespace lockstep::data
