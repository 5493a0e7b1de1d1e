#include "lockstep/comm/testing/values.h"

#include "lockstep/comm/fold_tree.h"

namespace lockstep::comm::testing {
namespace {

using at::Tensor;

template <typename Node>
Tensor tree(const std::vector<Tensor>& values, Node&& node) {
  LeafFold<Tensor> fold;
  for (const auto& value : values) fold.push(value, node);
  return fold.finish(node);
}

Tensor node_of(const Tensor& a, const Tensor& b, ReduceOp op) {
  const bool narrow = a.is_floating_point() && a.element_size() == 2;
  const Tensor x = narrow ? a.to(at::kFloat) : a, y = narrow ? b.to(at::kFloat) : b;
  switch (op) {
    case ReduceOp::kMax:
      return at::maximum(a, b);
    case ReduceOp::kMin:
      return at::minimum(a, b);
    case ReduceOp::kBitOr:
      return at::bitwise_or(a, b);
    case ReduceOp::kProduct:
      return (x * y).to(a.scalar_type());
    default:
      return (x + y).to(a.scalar_type());
  }
}

}  // namespace

Tensor input_of(int rank, at::ScalarType dtype, at::IntArrayRef shape) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(rank) + 1);
  if (at::isFloatingType(dtype)) return at::randn(shape, generator).to(dtype);
  return at::randint(0, dtype == at::kBool ? 2 : 5, shape, generator).to(dtype);
}

std::vector<Tensor> inputs(int size, at::ScalarType dtype, at::IntArrayRef shape) {
  std::vector<Tensor> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(input_of(rank, dtype, shape));
  return all;
}

Tensor expected(const std::vector<Tensor>& values, ReduceOp op) {
  const Tensor whole = tree(values, [op](const Tensor& a, const Tensor& b) { return node_of(a, b, op); });
  if (op != ReduceOp::kMean) return whole;
  const auto count = static_cast<int64_t>(values.size());
  const auto dtype = whole.scalar_type();
  if (dtype == at::kDouble) return whole / static_cast<double>(count);
  return (whole.to(at::kFloat) / static_cast<float>(count)).to(dtype);
}

Tensor expected_on_wire(const std::vector<Tensor>& values, at::ScalarType wire) {
  std::vector<Tensor> leaves;
  for (const auto& value : values) leaves.push_back(value.to(wire).to(at::kFloat));
  return tree(leaves, [wire](const Tensor& a, const Tensor& b) { return (a + b).to(wire).to(at::kFloat); });
}

Tensor laid_out(const Tensor& values, Layout layout) {
  const int64_t n = values.numel();
  Tensor out;
  switch (layout) {
    case Layout::kAligned:
      return values.clone();
    case Layout::kUnaligned:
      out = at::empty({n + 1}, values.options()).slice(0, 1).view(values.sizes());
      break;
    case Layout::kStrided:
      out = at::empty({2 * n}, values.options()).slice(0, 0, 2 * n, 2).view(values.sizes());
      break;
  }
  out.copy_(values);
  return out;
}

}  // namespace lockstep::comm::testing
