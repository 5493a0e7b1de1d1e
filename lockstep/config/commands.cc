#include "lockstep/config/commands.h"

#include "lockstep/base/board.h"

namespace lockstep::config {
namespace {

template <typename Options>
OptionSpec<Options> processes() {
  return number("nproc", "N", "processes", &Options::nproc, 1, kMaxLocalRanks);
}

template <typename Options>
OptionSpec<Options> threads() {
  return number("threads", "N", "compute threads a process (default: cores / processes)", &Options::threads, 0, 1024);
}

template <typename Options>
OptionSpec<Options> json() {
  return flag("json", "machine-readable output", &Options::json);
}

}  // namespace

OptionTable<EvalOptions> eval_table() {
  using O = EvalOptions;
  OptionTable<O> table;
  add_section(table, "Options",
              {text("load", "FILE", "the checkpoint to evaluate (required)", &O::load),
               text("data", "DIR", "folder of the data set (left out: data made on the spot)", &O::data),
               number("batch-size", "N", "samples at a time", &O::batch_size, 1, 1 << 24), processes<O>(), threads<O>(),
               amp_option<O>(), json<O>()});
  return table;
}

OptionTable<BenchOptions> bench_table(BenchKind kind) {
  using O = BenchOptions;
  OptionTable<O> rows;
  const auto size = number("size", "PX", "pixels a side", &O::size, 1, 4096);
  const auto batch_size = number("batch-size", "N", "samples a process", &O::batch_size, 1, 1 << 20);
  switch (kind) {
    case BenchKind::kStep:
      rows = {word("model", "", &O::model),
              size,
              batch_size,
              word("dtype", "of the model", &O::dtype),
              toggle("channels-last", "memory layout of images", &O::channels_last),
              word("optimizer", "", &O::optimizer),
              processes<O>(),
              threads<O>(),
              flag("no-comm", "leave the all-reduce out", &O::no_comm),
              amp_option<O>(),
              json<O>()};
      break;
    case BenchKind::kData:
      rows = {threads<O>(), size, batch_size, json<O>()};
      break;
    case BenchKind::kAllreduce:
    case BenchKind::kStartup:
      rows = {processes<O>(), json<O>()};
      break;
  }
  OptionTable<O> table;
  add_section(table, "Options", std::move(rows));
  return table;
}

OptionTable<InspectOptions> inspect_table() {
  OptionTable<InspectOptions> table;
  add_section(table, "Options", {json<InspectOptions>()});
  return table;
}

OptionTable<LaunchOptions> launch_table() {
  using O = LaunchOptions;
  OptionTable<O> table;
  add_section(table, "Options",
              {processes<O>(),
               number("threads", "N", "OMP_NUM_THREADS, where it is not set (default: cores / processes)", &O::threads,
                      0, 1024),
               text("log-dir", "DIR", "keep each process's output in DIR/rank<k>.log", &O::log_dir)});
  return table;
}

}  // namespace lockstep::config
