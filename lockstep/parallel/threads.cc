#include "lockstep/parallel/threads.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "lockstep/base/env.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/parallel/options/lanes.h"

namespace lockstep::parallel {
namespace {

// libtorch's own choice, taken before main() can have made another. It has no name of its own: MKL may lower what the
// environment says.
const int threads_at_start = at::get_num_threads();

// What this thread has set: the number may be libtorch's own by chance.
thread_local bool chosen = false;
thread_local int proposed = 0;  // 0: nothing

// The last proposal of any thread, with which those begin that come later. 0: none.
std::atomic<int> proposal = 0;

bool by_environment() {
  const bool by_our_launcher = env("LOCKSTEP_THREADS") == "auto";  // which then counts cores by rank
  return env("OMP_NUM_THREADS") && !by_our_launcher;
}

bool are_chosen_or_proposed() {
  return chosen || proposed > 0 || by_environment() || at::get_num_threads() != threads_at_start;
}

}  // namespace

void choose_threads(int lanes) {
  if (chosen || by_environment()) return;
  const int now = at::get_num_threads();
  const bool by_program = proposed > 0 ? now != proposed : now != threads_at_start && now != proposal;
  if (by_program) return;
  chosen = true;
  at::set_num_threads(default_threads(usable_cores(), lanes));
}

void propose_threads(int lanes) {
  if (are_chosen_or_proposed()) return;
  proposed = default_threads(usable_cores(), lanes);
  proposal = proposed;
  at::set_num_threads(proposed);
}

int least_of_ranks(int threads, comm::Communicator& comm) {
  for (const std::string& of_rank : comm::gather_texts(comm, std::to_string(threads))) {
    threads = std::min(threads, std::stoi(of_rank));
  }
  return threads;
}

OneThreadUnlessChosen::OneThreadUnlessChosen() {
  if (are_chosen_or_proposed()) return;
  before_ = at::get_num_threads();
  at::set_num_threads(1);
}

OneThreadUnlessChosen::~OneThreadUnlessChosen() {
  if (before_ > 0) at::set_num_threads(before_);
}

}  // namespace lockstep::parallel
