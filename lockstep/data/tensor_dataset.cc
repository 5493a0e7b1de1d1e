#include "lockstep/data/tensor_dataset.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/xxh3.h"

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

int64_t bytes_of_row(const at::Tensor& tensor) {
  return tensor.size(0) == 0 ? 0 : static_cast<int64_t>(tensor.nbytes()) / tensor.size(0);
}

// The number of classes that is asked for, or that the target has. 0: it has none.
int64_t classes_of(const at::Tensor& target, int64_t asked) {
  if (asked < 0) throw ConfigError("TensorDataset: classes = ", asked, "; 1 or more, or 0 to count them");
  if (!target.defined() || target.scalar_type() != at::kLong) {
    if (asked == 0) return 0;
    throw ConfigError("TensorDataset: classes = ", asked, ", and ",
                      target.defined() ? cat("the target is ", target.scalar_type()) : "there is no target",
                      "; classes are int64");
  }
  if (target.numel() == 0) return asked;
  const auto* const values = target.const_data_ptr<int64_t>();
  const auto* const largest = std::max_element(values, values + target.numel());
  const int64_t counted = std::max<int64_t>(0, *largest + 1);
  if (asked == 0 || counted <= asked) return std::max(asked, counted);
  throw ConfigError("TensorDataset: sample ", (largest - values) / (target.numel() / target.size(0)), " is of class ",
                    *largest, ", and classes = ", asked, " go from 0 to ", asked - 1);
}

}  // namespace

TensorDataset::TensorDataset(at::Tensor data, at::Tensor target, const TensorDatasetOptions& options)
    : TensorDataset(std::move(data), std::move(target), {}, options) {}

TensorDataset::TensorDataset(at::Tensor data, at::Tensor target, std::map<std::string, at::Tensor> more,
                             const TensorDatasetOptions& options) {
  if (!data.defined()) throw ConfigError("TensorDataset: data is an undefined tensor");
  all_ = Batch::of(std::move(data), std::move(target));
  for (auto& [name, tensor] : more) {
    if (!tensor.defined()) throw ConfigError("TensorDataset: ", name, " is an undefined tensor");
    if (all_.has(name)) throw ConfigError("TensorDataset: two tensors are named ", name);
    all_.tensors.emplace_back(name, std::move(tensor));
  }
  const int64_t samples = all_.data().dim() > 0 ? all_.size() : 0;
  for (auto& [name, tensor] : all_.tensors) tensor = rows_of(tensor, name, samples);
  classes_ = classes_of(all_.has("target") ? all_.target() : at::Tensor(), options.classes);
}

std::vector<Field> TensorDataset::fields() const {
  std::vector<Field> fields;
  for (const auto& [name, tensor] : all_.tensors) {
    fields.push_back({.name = name, .dtype = tensor.scalar_type(), .shape = tensor.sizes().slice(1).vec()});
  }
  return fields;
}

void TensorDataset::read(int64_t index, const Draw&, std::span<const at::Tensor> rows, ReadStats&) const {
  check_index(index, size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const at::Tensor& from = all_.tensors[i].second;
    const int64_t bytes = bytes_of_row(from);
    if (bytes == 0) continue;
    const auto* first = static_cast<const char*>(from.const_data_ptr());
    std::memcpy(rows[i].mutable_data_ptr(), first + index * bytes, static_cast<size_t>(bytes));
  }
}

int64_t TensorDataset::class_of(int64_t index) const {
  if (classes_ == 0 || all_.target().dim() != 1) return -1;
  check_index(index, size());
  return all_.target().const_data_ptr<int64_t>()[index];
}

std::string TensorDataset::fingerprint() const {
  Xxh3 bytes;
  for (const auto& [name, tensor] : all_.tensors) {
    const std::string what = cat(name, ' ', tensor.scalar_type(), ' ', tensor.sizes(), '\n');
    bytes.add(what.data(), what.size());
    bytes.add(tensor.const_data_ptr(), tensor.nbytes());
  }
  return cat("tensors ", hex(bytes.value()));
}

std::string TensorDataset::description() const {
  std::string names;
  for (const auto& [name, tensor] : all_.tensors) names += cat(names.empty() ? "" : ", ", name);
  return cat("tensors ", names, ", ", size(), " samples");
}

}  // namespace lockstep::data
