#include "lockstep/comm/communicator.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numeric>

#include "lockstep/base/clock.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/copied_out.h"

namespace lockstep::comm {
namespace {

// An uninitialised tensor [size, …] for a tensor […].
at::Tensor rows_of(const at::Tensor& tensor, int64_t size) {
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape.insert(shape.begin(), size);
  return at::empty(shape, tensor.options());
}

std::vector<int64_t> times(const std::vector<int64_t>& rows, int64_t elements) {
  std::vector<int64_t> counts;
  for (const int64_t n : rows) counts.push_back(n * elements);
  return counts;
}

int64_t sum_of(const std::vector<int64_t>& counts) { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

// Elements in one row of the first dimension.
int64_t row_elements(const at::Tensor& tensor) {
  return c10::multiply_integers(tensor.sizes().slice(std::min<size_t>(1, tensor.sizes().size())));
}

// Counts a write as an operation in place does: autograd and fp32 masters go by a tensor's version.
void count_write(const at::Tensor& tensor) {
  if (tensor.defined() && !tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
}

}  // namespace

std::string Communicator::describe() const { return cat(backend(), ", ", size(), size() == 1 ? " rank" : " ranks"); }

std::shared_ptr<Work> Communicator::start(Call call) {
  check_call(call, size());
  call.timeout = bounded(call.timeout);
  if (call.kind == OpKind::kFold) {
    for (const at::Tensor& tensor : call.tensors) count_write(tensor);
    if (!takes_leaves()) widen_leaves(call);
    return begin(std::move(call));
  }
  const bool in_place = call.input.is_same(call.output);
  const bool is_written = !(call.kind == OpKind::kBroadcast && call.peer == rank());  // the root keeps its values
  // A weight of the root's counts, too: what goes by versions must decide alike on all ranks. Its activations do not:
  // backward may need them as they are.
  if (is_written || call.output.is_leaf()) count_write(call.output);
  if (call.input.defined()) call.input = call.input.detach().contiguous();
  if (!call.output.defined()) return begin(std::move(call));
  const at::Tensor output = call.output.detach();
  call.output = in_place ? call.input : output.is_contiguous() ? output : at::empty(output.sizes(), output.options());
  const at::Tensor dense = call.output;
  auto work = begin(std::move(call));
  if (output.is_contiguous() || !is_written) return work;
  return std::make_shared<CopiedOut>(std::move(work), dense, output);
}

std::shared_ptr<Work> Communicator::fold(std::vector<at::Tensor> tensors, FoldOptions options) {
  return start(calls::fold(std::move(tensors), std::move(options)));
}

void Communicator::all_reduce(const at::Tensor& tensor, ReduceOp op) { start(calls::all_reduce(tensor, op))->wait(); }

void Communicator::reduce(const at::Tensor& tensor, int root, ReduceOp op) {
  start(calls::reduce(tensor, root, op))->wait();
}

void Communicator::broadcast(const at::Tensor& tensor, int root) { start(calls::broadcast(tensor, root))->wait(); }

at::Tensor Communicator::all_gather(const at::Tensor& tensor) {
  const at::Tensor all = rows_of(tensor, size());
  start(calls::all_gather(tensor, all, size()))->wait();
  return all;
}

std::vector<at::Tensor> Communicator::all_gather_uneven(const at::Tensor& tensor) {
  const int64_t row = row_elements(tensor);
  const at::Tensor rows = all_gather(at::tensor({tensor.dim() == 0 ? int64_t{1} : tensor.size(0)}, at::kLong));
  const auto* begin = rows.const_data_ptr<int64_t>();
  const std::vector<int64_t> counts(begin, begin + size());
  std::vector<int64_t> shape = tensor.dim() == 0 ? std::vector<int64_t>{1} : tensor.sizes().vec();
  shape[0] = sum_of(counts);
  const at::Tensor all = at::empty(shape, tensor.options());
  start(calls::all_gather_uneven(tensor, all, times(counts, row)))->wait();
  return all.split_with_sizes(counts);
}

at::Tensor Communicator::reduce_scatter(const at::Tensor& tensor, ReduceOp op) {
  const at::Tensor row = at::empty(tensor.dim() > 0 ? tensor.sizes().slice(1) : tensor.sizes(), tensor.options());
  start(calls::reduce_scatter(tensor, row, op))->wait();
  return row;
}

at::Tensor Communicator::all_to_all(const at::Tensor& tensor) {
  const std::vector<int64_t> ones(static_cast<size_t>(size()), tensor.dim() > 0 ? tensor.size(0) / size() : 0);
  const at::Tensor out = at::empty(tensor.sizes(), tensor.options());
  Call call = calls::all_to_all(tensor, out, size());
  call.send_counts = call.receive_counts = times(ones, row_elements(tensor));
  start(std::move(call))->wait();
  return out;
}

at::Tensor Communicator::all_to_all(const at::Tensor& tensor, const std::vector<int64_t>& send_rows,
                                    const std::vector<int64_t>& receive_rows) {
  const int64_t row = row_elements(tensor);
  std::vector<int64_t> shape = tensor.sizes().vec();
  if (!shape.empty()) shape[0] = sum_of(receive_rows);
  const at::Tensor out = at::empty(shape, tensor.options());
  start(calls::all_to_all_uneven(tensor, out, times(send_rows, row), times(receive_rows, row)))->wait();
  return out;
}

at::Tensor Communicator::gather(const at::Tensor& tensor, int root) {
  const at::Tensor all = rank() == root ? rows_of(tensor, size()) : at::Tensor();
  start(calls::gather(tensor, all, root, size()))->wait();
  return all;
}

void Communicator::scatter(const at::Tensor& rows, const at::Tensor& out, int root) {
  start(calls::scatter(rank() == root ? rows : at::Tensor(), out, root, size()))->wait();
}

void Communicator::send(const at::Tensor& tensor, int to, int tag) { start(calls::send(tensor, to, tag))->wait(); }

void Communicator::receive(const at::Tensor& tensor, int from, int tag) {
  start(calls::receive(tensor, from, tag))->wait();
}

std::shared_ptr<Work> Communicator::isend(const at::Tensor& tensor, int to, int tag) {
  return start(calls::send(tensor, to, tag));
}

std::shared_ptr<Work> Communicator::irecv(const at::Tensor& tensor, int from, int tag) {
  return start(calls::receive(tensor, from, tag));
}

void Communicator::barrier() { start(calls::barrier())->wait(); }

std::unique_ptr<Communicator> Communicator::split(int color, int key) {
  const at::Tensor all = all_gather(at::tensor({color, key}, at::kInt));
  const auto* told = all.const_data_ptr<int>();
  std::vector<int> members;
  for (int k = 0; k < size(); ++k) {
    if (color >= 0 && told[2 * k] == color) members.push_back(k);
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) { return told[2 * a + 1] < told[2 * b + 1]; });
  return group(members);
}

}  // namespace lockstep::comm
