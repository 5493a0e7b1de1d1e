// Collectives and messages by example: what each call does with small tensors. Any number of ranks.
//
//   lockstep launch --nproc 4 example_collectives      (or torchrun, mpirun, srun)
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <cstdio>
#include <string>

#include "lockstep/base/run_main.h"
#include "lockstep/world/once.h"
#include "lockstep/world/world.h"

using lockstep::comm::ReduceOp;

std::string text(const at::Tensor& tensor) {
  std::string line;
  const at::Tensor flat = tensor.contiguous().view({-1});
  for (int64_t i = 0; i < flat.numel(); ++i) line += std::to_string(flat[i].item<int64_t>()) + " ";
  return line;
}

int run() {
  const auto world = lockstep::init();
  auto& comm = world->communicator();
  const int rank = world->rank(), size = world->size();
  const auto say = [rank](const char* call, const at::Tensor& result) {
    if (rank == 0) std::printf("%s: %s\n", call, text(result).c_str());
  };

  const at::Tensor sum = at::full({2}, rank + 1);
  comm.all_reduce(sum, ReduceOp::kSum);  // in place: 1 + 2 + … + size
  say("all_reduce", sum);

  const at::Tensor from_zero = at::full({2}, rank);
  comm.broadcast(from_zero, /*root=*/0);
  say("broadcast", from_zero);

  const at::Tensor rows = comm.all_gather(at::full({1}, rank * rank));  // [size, 1]
  say("all_gather", rows);

  const at::Tensor mine = comm.reduce_scatter(at::arange(size), ReduceOp::kSum);  // rank k: k · size
  const at::Tensor every = comm.all_gather(mine);
  say("reduce_scatter", every);

  const at::Tensor columns = comm.all_to_all(at::full({size, 1}, rank));  // row k goes to rank k
  say("all_to_all", columns);

  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  const at::Tensor theirs = at::empty({1}, at::kLong), own = at::full({1}, rank);
  auto sent = comm.isend(own, next, /*tag=*/7);  // a ring: send without waiting …
  comm.receive(theirs, before, 7);               // … receive …
  sent->wait();                                  // … and then wait
  say("ring", theirs);

  const auto group = comm.split(/*color=*/rank % 2);  // even ranks, odd ranks
  const at::Tensor in_group = at::full({1}, rank);
  group->all_reduce(in_group, ReduceOp::kMax);
  say("split", in_group);

  lockstep::once(*world, lockstep::OnceScope::kWorld, [] { std::printf("once: by rank 0, while the others wait\n"); });
  return 0;
}

int main() { return lockstep::run_main(run); }
