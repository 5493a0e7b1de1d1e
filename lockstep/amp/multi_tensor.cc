#include "lockstep/amp/multi_tensor.h"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::amp {
namespace {

constexpr int64_t kChunk = 16384;  // elements: a few fp32 arrays of so many fit a core's own cache

// All elements in the order in which they lie.
at::Tensor flat(const at::Tensor& tensor) { return tensor.detach().as_strided({tensor.numel()}, {1}); }

void check_lists(const char* what, const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  if (a.size() != b.size()) throw ConfigError(what, ": lists of ", a.size(), " and ", b.size(), " tensors");
  for (size_t i = 0; i < a.size(); ++i) {
    const bool dense = a[i].is_non_overlapping_and_dense() && a[i].is_floating_point() && b[i].is_floating_point();
    if (a[i].device() != a[0].device() || b[i].device() != a[0].device()) {
      throw ConfigError(what, ": tensor ", i, " is on ", a[i].device().str(), " and ", b[i].device().str(),
                        ", the first on ", a[0].device().str(), "; give one device's tensors in a call");
    }
    if (!dense || a[i].sizes() != b[i].sizes() || a[i].strides() != b[i].strides()) {
      throw ConfigError(what, ": tensor ", i, ": ", a[i].toString(), ' ', a[i].sizes(), " and ", b[i].toString(), ' ',
                        b[i].sizes(), "; both must be dense, floating-point, and of one shape and memory format");
    }
  }
}

// Calls visit(i, first, elements) for each chunk of each tensor.
template <typename Visit>
void for_each_chunk(const std::vector<at::Tensor>& tensors, Visit&& visit) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t step = tensors[i].is_cpu() ? kChunk : std::max<int64_t>(1, tensors[i].numel());
    for (int64_t at = 0; at < tensors[i].numel(); at += step) visit(i, at, std::min(step, tensors[i].numel() - at));
  }
}

at::ScalarType work_type(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == at::kDouble || b.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// A chunk times a factor, in place; found_inf becomes 1 where it was not finite before.
void check_and_scale(at::Tensor chunk, at::Tensor& found_inf, const at::Tensor& factor) {
  at::_amp_foreach_non_finite_check_and_unscale_({chunk}, found_inf, factor);
}

struct Check {
  explicit Check(const std::vector<at::Tensor>& tensors) {
    const auto device = tensors.empty() ? at::Device(at::kCPU) : tensors[0].device();
    found_inf = at::zeros({1}, at::TensorOptions(device).dtype(at::kFloat));
  }
  at::Tensor factor(double value) const { return at::full({1}, value, found_inf.options()); }
  bool finite() const { return found_inf.item<float>() == 0; }
  at::Tensor found_inf;
};

}  // namespace

bool multi_tensor_scale(const std::vector<at::Tensor>& in, const std::vector<at::Tensor>& out, double scale) {
  check_lists("multi_tensor_scale", in, out);
  const c10::AutoGradMode no_grad(false);
  Check check(in);
  const at::Tensor factor = check.factor(scale);
  for_each_chunk(in, [&](size_t i, int64_t first, int64_t count) {
    const at::Tensor from = flat(in[i]).narrow(0, first, count), to = flat(out[i]).narrow(0, first, count);
    const at::ScalarType type = work_type(from, to);
    const bool wide = to.scalar_type() == type;
    const at::Tensor work = wide ? to : at::empty_like(from, type);
    if (!work.is_same(from)) work.copy_(from);
    check_and_scale(work, check.found_inf, factor);
    if (!wide) to.copy_(work);
  });
  return check.finite();
}

bool multi_tensor_axpby(double a, const std::vector<at::Tensor>& x, double b, const std::vector<at::Tensor>& y,
                        const std::vector<at::Tensor>& out) {
  check_lists("multi_tensor_axpby", x, y);
  check_lists("multi_tensor_axpby", x, out);
  const c10::AutoGradMode no_grad(false);
  Check check(x);
  const at::Tensor of_x = check.factor(a), of_y = check.factor(b);
  for_each_chunk(x, [&](size_t i, int64_t first, int64_t count) {
    const at::ScalarType type = work_type(x[i], y[i]);
    const at::Tensor left = flat(x[i]).narrow(0, first, count).to(type, /*non_blocking=*/false, /*copy=*/true);
    const at::Tensor right = flat(y[i]).narrow(0, first, count).to(type, false, true);
    check_and_scale(left, check.found_inf, of_x);
    check_and_scale(right, check.found_inf, of_y);
    flat(out[i]).narrow(0, first, count).copy_(left.add_(right));
  });
  return check.finite();
}

Norms multi_tensor_l2norm(const std::vector<at::Tensor>& tensors) {
  const c10::AutoGradMode no_grad(false);
  Norms norms;
  std::vector<double> squares(tensors.size());
  for_each_chunk(tensors, [&](size_t i, int64_t first, int64_t count) {
    const at::Tensor chunk = tensors[i].is_cpu() ? flat(tensors[i]).narrow(0, first, count) : tensors[i].detach();
    squares[i] += at::linalg_vector_norm(chunk.to(at::kDouble)).square().item<double>();
  });
  double sum = 0;
  for (const double square : squares) {
    norms.each.push_back(std::sqrt(square));
    sum += square;
  }
  norms.total = std::sqrt(sum);
  return norms;
}

}  // namespace lockstep::amp
