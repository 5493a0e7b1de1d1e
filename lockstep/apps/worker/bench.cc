#include <numeric>

#include "commands.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/mnist.h"

namespace lockstep::worker {

int run(const config::BenchOptions& options) {
  switch (options.kind) {
    case config::BenchKind::kStep:
      return bench_step(options);
    case config::BenchKind::kAllreduce:
      return bench_allreduce(options);
    case config::BenchKind::kData:
      return bench_data(options);
    case config::BenchKind::kStartup:
      break;  // the front's
  }
  throw BugError("bench startup is not a worker's");
}

// How fast batches of a data set are made, by as many threads as asked for.
int bench_data(const config::BenchOptions& options) {
  const auto data = data::open_mnist(options.data).train;
  data::LaneSampler sampler({.dataset_size = data->size(), .lanes = 1, .batch_size = options.batch_size, .seed = 1});
  data::Loader loader(data, sampler, {.first_lane = 0, .last_lane = 1, .workers = std::max(1, options.threads)});
  int64_t images = 0;
  const Stopwatch watch;
  while (watch.seconds() < 2) images += loader.next().lanes[0].size();
  const double rate = static_cast<double>(images) / watch.seconds();
  print(options.json ? nlohmann::json{{"images_per_second", rate}}.dump() + '\n' : cat(rate, " images/s\n"));
  return 0;
}

}  // namespace lockstep::worker
