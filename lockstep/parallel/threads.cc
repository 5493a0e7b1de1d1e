#include "lockstep/parallel/threads.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "lockstep/base/env.h"

namespace lockstep::parallel {
namespace {

// libtorch's own choice, taken before main() can have made another. It has no name of its own: MKL may lower what the
// environment says.
const int threads_at_start = at::get_num_threads();

thread_local bool settled = false;

bool are_chosen() {
  const bool by_our_launcher = env("LOCKSTEP_THREADS") == "auto";  // which then counts cores by rank
  const bool by_others = env("OMP_NUM_THREADS") && !by_our_launcher;
  return settled || by_others || at::get_num_threads() != threads_at_start;
}

}  // namespace

void choose_threads(int lanes) {
  if (are_chosen()) return;
  settled = true;  // the number may be libtorch's own by chance
  at::set_num_threads(std::max(1, usable_cores() / std::max(1, lanes)));
}

void keep_threads() { settled = true; }

OneThreadUnlessChosen::OneThreadUnlessChosen() {
  if (are_chosen()) return;
  before_ = at::get_num_threads();
  at::set_num_threads(1);
}

OneThreadUnlessChosen::~OneThreadUnlessChosen() {
  if (before_ > 0) at::set_num_threads(before_);
}

}  // namespace lockstep::parallel
