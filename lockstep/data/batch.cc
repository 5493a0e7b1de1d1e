#include "lockstep/data/batch.h"

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

}  // namespace lockstep::data
