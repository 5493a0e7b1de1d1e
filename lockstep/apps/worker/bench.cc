#include <cmath>
#include <numeric>

#include "commands.h"
#include "lockstep/amp/auto_level.h"
#include "lockstep/base/error.h"

namespace lockstep::worker {

int bench(const Arguments& args) {
  using apps::BenchKind;
  apps::BenchCommand command;
  if (const auto help = command.read(args)) return print(*help), 0;
  const BenchOptions& options = command.options();
  switch (options.kind) {
    case BenchKind::kStep:
      return bench_step(options);
    case BenchKind::kAllreduce:
      return bench_allreduce(options);
    case BenchKind::kOptimizer:
      return bench_optimizer(options);
    case BenchKind::kData:
      return bench_data(options);
    case BenchKind::kPrecision:
      return bench_precision(options);
    case BenchKind::kCheckpoint:
      return bench_checkpoint(options);
    case BenchKind::kPipeline:
      return bench_pipeline(options);
    case BenchKind::kForms:
      return bench_forms(options);
    case BenchKind::kStartup:
      break;  // the front's
  }
  throw BugError("bench startup is not a worker's");
}

// Measures the rates that decide --amp auto anew, and writes them to the cache folder.
int bench_precision(const BenchOptions& options) {
  const amp::Rates rates = amp::measure_rates();
  amp::write_rates(amp::cache_folder(), rates);
  const amp::AutoChoice choice = amp::auto_level(rates);
  const nlohmann::ordered_json found = {{"fp32_gflops", rates.fp32},
                                        {"bf16_gflops", rates.bf16},
                                        {"fp16_gflops", rates.fp16},
                                        {"auto", choice.policy.name()},
                                        {"why", choice.why}};
  print(options.json ? found.dump() + '\n'
                     : cat("fp32 ", std::lround(rates.fp32), ", bf16 ", std::lround(rates.bf16), ", fp16 ",
                           std::lround(rates.fp16), " GFLOP/s a thread; --amp auto: ", choice.policy.name(), ", ",
                           choice.why, '\n'));
  return 0;
}

}  // namespace lockstep::worker
