#include "lockstep/parallel/gradients/sparse_gradients.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::parallel {

namespace {

SparseRows no_rows(const at::Tensor& parameter) {
  return {.indices = at::empty({0}, at::kLong), .values = parameter.detach().narrow(0, 0, 0).cpu()};
}

}  // namespace

SparseGradients::SparseGradients(const std::vector<NamedParameter>& parameters) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].sparse) entries_.emplace(i, Entry{.parameter = parameters[i], .lanes = {}});
  }
}

void SparseGradients::push(size_t parameter, size_t lane, const at::Tensor& gradient) {
  auto& [named, lanes] = entries_.at(parameter);
  if (lanes.contains(lane)) throw BugError("lane ", lane, " has given its gradient already");
  lanes[lane] = gradient.defined() ? add_equal_rows(rows_of(gradient, named.name)) : no_rows(named.tensor);
}

void SparseGradients::fold(double scale, comm::Communicator& comm, std::vector<at::Tensor>& gradients) {
  for (auto& [index, entry] : entries_) {
    std::vector<SparseRows> lanes;
    for (auto& [lane, rows] : std::exchange(entry.lanes, {})) {
      if (scale != 1) rows.values.mul_(scale);
      lanes.push_back(std::move(rows));
    }
    gradients[index] = fold_sparse(lanes, entry.parameter.tensor, comm);
  }
}

void SparseGradients::clear() noexcept {
  for (auto& [index, entry] : entries_) entry.lanes.clear();
}

double SparseGradients::add_square_sums(double sum) const {
  for (const auto& [index, entry] : entries_) {
    const at::Tensor& grad = entry.parameter.tensor.grad();
    if (grad.defined()) sum += grad._values().to(at::kDouble).square().sum().item<double>();
  }
  return sum;
}

std::optional<size_t> SparseGradients::first_not_finite() const {
  for (const auto& [index, entry] : entries_) {
    const at::Tensor& grad = entry.parameter.tensor.grad();
    if (grad.defined() && !grad._values().isfinite().all().item<bool>()) return index;
  }
  return std::nullopt;
}

}  // namespace lockstep::parallel
