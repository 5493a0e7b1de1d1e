// bench optimizer: bytes that an update moves by element, beside the fewest that it can.
//
// Moved is what memory could have moved in the update's time: the time by the bandwidth of a triad (a += s · b, which
// reads two and writes one, in place as an update does), libtorch's or by the updates' own vector code, whichever is
// faster, measured in turns with it, on tensors as large. So whatever keeps an update from memory's full speed counts
// as bytes. The fewest: each operand that a pass reads or writes, once. Of several times the least counts, as in
// STREAM, and times are the processor's, not the clock's: others at work are left out as far as can be.
#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

#include "commands.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/optim/kernels/step.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/optim/rules/sgd.h"
#include "lockstep/parallel/options/lanes.h"

namespace lockstep::worker {
namespace {

constexpr int kTurns = 9;

// One optimizer. `wide` is how often an fp32 element, of the weights or of the state, is read or written in a step, and
// `gradient` is the same for an element of the gradient.
struct Case {
  const char* optimizer;
  optim::NamedOptions options;
  int wide;
  int gradient = 1;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"sgd", {{"momentum", 0.9}}, 4},
      {"adagrad", {}, 4},
      {"adam", {}, 6},
      {"adamw", {}, 6},
      {"rmsprop", {}, 4},
      {"rmsprop", {{"momentum", 0.9}, {"centered", true}, {"eps", 1.0}}, 8},
      {"nadam", {}, 6},
      {"lamb", {{"max_grad_norm", 0.0}}, 9},  // reads weight and state twice
      {"lamb", {}, 9, 2},                     // and the gradient, for the norm of all
      {"lars", {}, 5, 2},
      {"novograd", {}, 4, 2},
  };
  return all;
}

// Returns the seconds of processor time that act() takes, divided by the number of threads.
template <typename Act>
double seconds_of(const Act& act) {
  const std::clock_t start = std::clock();
  act();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / at::get_num_threads();
}

std::string label_of(const Case& each) {
  std::string label = each.optimizer;
  for (const auto& option : each.options) label += cat(' ', option.name, '=', optim::to_text(option.value));
  return label;
}

nlohmann::ordered_json measure(const Case& each, int64_t elements, bool masters) {
  const at::ScalarType type = masters ? at::kBFloat16 : at::kFloat;
  at::Tensor weight = at::randn({elements}).to(type).requires_grad_();
  weight.mutable_grad() = (at::randn({elements}) * 0.01).to(type);
  const auto optimizer = optim::make_optimizer(each.optimizer, {weight}, each.options);
  if (masters) optimizer->keep_masters();
  const at::Tensor a = at::randn({elements}), b = at::randn({elements});
  const auto update = [&] { optimizer->update({}); };
  const auto triad = [&] { a.add_(b, 1e-3); };
  const auto own_triad = [&] { optim::step_parameter(optim::SgdRule{.multiplier = 1, .lr = -1e-3}, {a, b}); };
  update();
  triad();
  // With masters the gradient that is read and the weights' copy that is written have 16 bits.
  const int fewest = 4 * each.wide + each.gradient * (masters ? 2 : 4) + (masters ? 2 : 0);
  double seconds = seconds_of(update), triad_seconds = seconds_of(triad);
  for (int turn = 1; turn < kTurns; ++turn) {
    seconds = std::min(seconds, seconds_of(update));
    triad_seconds = std::min({triad_seconds, seconds_of(triad), seconds_of(own_triad)});
  }
  const double moved = 12 * seconds / triad_seconds;
  return {{"optimizer", label_of(each)},
          {"weights", masters ? "bf16 with fp32 masters" : "fp32"},
          {"fewest_bytes", fewest},
          {"moved_bytes", moved},
          {"ratio", moved / fewest},
          {"seconds", seconds},
          {"memory_gbps", 12 * static_cast<double>(elements) / triad_seconds * 1e-9}};
}

std::string table(const nlohmann::ordered_json& rows) {
  std::string text = "bytes an element: fewest   moved   ratio   memory GB/s   optimizer\n";
  for (const auto& row : rows) {
    std::array<char, 80> line{};
    std::snprintf(line.data(), line.size(), "%24d  %6.1f  %6.2f  %12.1f   ", row["fewest_bytes"].get<int>(),
                  row["moved_bytes"].get<double>(), row["ratio"].get<double>(), row["memory_gbps"].get<double>());
    text += line.data() + row["optimizer"].get<std::string>() + ", " + row["weights"].get<std::string>() + '\n';
  }
  return text;
}

}  // namespace

int bench_optimizer(const BenchOptions& options) {
  at::NoGradGuard no_grad;
  at::set_num_threads(parallel::threads_or_default(options.processes.threads, usable_cores(), 1));
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const bool masters : {false, true}) {
    for (const Case& each : cases()) rows.push_back(measure(each, int64_t{options.elements} << 10, masters));
  }
  print(options.json ? rows.dump() + '\n' : table(rows));
  return 0;
}

}  // namespace lockstep::worker
