#include "lockstep/parallel/threads.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "lockstep/base/env.h"

namespace lockstep::parallel {
namespace {

// libtorch's own choice, taken before main() can have made another. It has no name of its own: MKL may lower what the
// environment says.
const int threads_at_start = at::get_num_threads();

}  // namespace

void choose_threads(int lanes) {
  const bool by_our_launcher = env("LOCKSTEP_THREADS") == "auto";  // which then counts cores by rank
  const bool by_others = env("OMP_NUM_THREADS") && !by_our_launcher;
  if (by_others || at::get_num_threads() != threads_at_start) return;
  at::set_num_threads(std::max(1, usable_cores() / std::max(1, lanes)));
}

}  // namespace lockstep::parallel
