#include "lockstep/parallel/state_broadcast.h"

#include <ATen/ops/view_as_real.h>
#include <c10/core/GradMode.h>

namespace lockstep::parallel {

void broadcast_tensor(const at::Tensor& tensor, comm::Communicator& comm, int root) {
  if (tensor.is_complex()) return broadcast_tensor(at::view_as_real(tensor.detach()), comm, root);
  if (tensor.is_cpu() || comm.shares(tensor)) return comm.broadcast(tensor, root);
  const c10::AutoGradMode no_grad(false);
  const at::Tensor here = tensor.cpu();
  comm.broadcast(here, root);
  tensor.detach().copy_(here);
}

void broadcast_state(const torch::nn::Module& module, comm::Communicator& comm, int root) {
  for (const auto& parameter : module.parameters()) broadcast_tensor(parameter, comm, root);
  for (const auto& buffer : module.buffers()) broadcast_tensor(buffer, comm, root);
}

}  // namespace lockstep::parallel
