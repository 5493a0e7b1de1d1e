#include "lockstep/data/batch.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

auto find(const std::vector<Batch::Named>& tensors, std::string_view name) {
  return std::find_if(tensors.begin(), tensors.end(), [&](const auto& named) { return named.first == name; });
}

}  // namespace

Batch Batch::of(at::Tensor data, at::Tensor target) {
  Batch batch;
  if (data.defined()) batch.tensors.emplace_back("data", std::move(data));
  if (target.defined()) batch.tensors.emplace_back("target", std::move(target));
  return batch;
}

bool Batch::has(std::string_view name) const { return find(tensors, name) != tensors.end(); }

const at::Tensor& Batch::operator[](std::string_view name) const {
  const auto found = find(tensors, name);
  if (found != tensors.end()) return found->second;
  std::string names;
  for (const auto& [known, tensor] : tensors) names += cat(names.empty() ? "" : ", ", known);
  throw ConfigError("the batch has no tensor ", name, "; ", names.empty() ? "it has none" : cat("it has ", names));
}

at::Tensor& Batch::operator[](std::string_view name) {
  return const_cast<at::Tensor&>(static_cast<const Batch&>(*this)[name]);
}

const at::Tensor& Batch::class_target() const {
  const at::Tensor& of = target();
  if (of.scalar_type() == at::kLong && of.dim() == 1) return of;
  throw ConfigError("the target is no int64 class for each sample, but ", of.scalar_type(), ' ', of.sizes(),
                    at::isFloatingType(of.scalar_type()) && of.dim() == 2
                        ? ", as probabilities of mixed batches are: count right answers on samples that are not mixed"
                        : "");
}

void Batch::drop_rows(const std::vector<int64_t>& rows) {
  if (rows.empty()) return;
  std::vector<int64_t> kept;
  for (int64_t row = 0; row < size(); ++row) {
    if (!std::binary_search(rows.begin(), rows.end(), row)) kept.push_back(row);
  }
  const at::Tensor index = at::tensor(kept, at::TensorOptions(at::kLong));
  for (auto& [name, tensor] : tensors) {
    tensor = tensor.index_select(0, index).contiguous(tensor.suggest_memory_format());
  }
}

}  // namespace lockstep::data
