#include "lockstep/parallel/tensor/regions.h"

#include <ATen/ops/cat.h>
#include <torch/csrc/autograd/custom_function.h>

#include "lockstep/parallel/tensor/slices.h"

namespace lockstep::parallel::tensor {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

comm::Communicator& comm_of(AutogradContext* context) {
  return *reinterpret_cast<comm::Communicator*>(context->saved_data["comm"].toInt());
}
void keep(AutogradContext* context, comm::Communicator& comm) {
  context->saved_data["comm"] = static_cast<int64_t>(reinterpret_cast<intptr_t>(&comm));
}

// 16-bit values are added in fp32.
Tensor summed(const Tensor& tensor, comm::Communicator& comm) {
  const bool is_narrow = tensor.is_floating_point() && tensor.element_size() < 4;
  const Tensor sum = tensor.detach().to(is_narrow ? at::kFloat : tensor.scalar_type(), /*non_blocking=*/false,
                                        /*copy=*/true);
  comm.all_reduce(sum, comm::ReduceOp::kSum);
  return is_narrow ? sum.to(tensor.scalar_type()) : sum;
}

Tensor own_part(const Tensor& tensor, int64_t dim, const comm::Communicator& comm) {
  check_divides(tensor.size(dim), comm, "dimension ", dim, " of a tensor ", tensor.sizes());
  return own_slice(tensor, dim, comm).contiguous();
}

Tensor joined(const Tensor& part, int64_t dim, comm::Communicator& comm) {
  const Tensor all = comm.all_gather(part.detach().contiguous());  // [ranks, …]
  return at::cat(all.unbind(0), dim);
}

// Each one's backward is its counterpart, which autograd knows: so second derivatives are right, too.

class Enter : public torch::autograd::Function<Enter> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& equal, comm::Communicator* comm) {
    keep(context, *comm);
    return equal.view_as(equal);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {leave(gradients[0], comm_of(context)), Tensor()};
  }
};

class Leave : public torch::autograd::Function<Leave> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& partial, comm::Communicator* comm) {
    keep(context, *comm);
    return summed(partial, *comm);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {enter(gradients[0], comm_of(context)), Tensor()};
  }
};

class TakePart : public torch::autograd::Function<TakePart> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& equal, int64_t dim, comm::Communicator* comm) {
    keep(context, *comm);
    context->saved_data["dim"] = dim;
    return own_part(equal, dim, *comm);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {join_parts(gradients[0], context->saved_data["dim"].toInt(), comm_of(context)), Tensor(), Tensor()};
  }
};

class JoinParts : public torch::autograd::Function<JoinParts> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& part, int64_t dim, comm::Communicator* comm) {
    keep(context, *comm);
    context->saved_data["dim"] = dim;
    return joined(part, dim, *comm);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {take_part(gradients[0], context->saved_data["dim"].toInt(), comm_of(context)), Tensor(), Tensor()};
  }
};

}  // namespace

at::Tensor enter(const at::Tensor& equal, comm::Communicator& comm) { return Enter::apply(equal, &comm); }
at::Tensor leave(const at::Tensor& partial, comm::Communicator& comm) { return Leave::apply(partial, &comm); }
at::Tensor take_part(const at::Tensor& equal, int64_t dim, comm::Communicator& comm) {
  return TakePart::apply(equal, dim, &comm);
}
at::Tensor join_parts(const at::Tensor& part, int64_t dim, comm::Communicator& comm) {
  return JoinParts::apply(part, dim, &comm);
}

}  // namespace lockstep::parallel::tensor
