// What a user's program begins with: join the world, fold a tensor over its ranks.
#include <ATen/ops/ones.h>
#include <lockstep/world/world.h>

int main() {
  const auto world = lockstep::init();
  const at::Tensor tensor = at::ones({5});
  world->communicator().all_reduce(tensor, lockstep::comm::ReduceOp::kSum);
  return world->size() == 1 && tensor.sum().item<float>() == 5 ? 0 : 1;
}
