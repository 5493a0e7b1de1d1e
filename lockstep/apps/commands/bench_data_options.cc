#include "lockstep/apps/commands/bench_data_options.h"

#include "lockstep/base/error.h"

namespace lockstep::apps {

void BenchDataOptions::declare(config::OptionSet& options) {
  using enum config::Effect;
  options.subject("data", &path, kNone);
  options.number("size", "PX", "pixels a side (left out: 224, 32 of CIFAR's; with masks 256, of the shorter side)",
                 &size, 16, 4096, kNone);
  options.number("batch-size", "N", "samples a batch", &batch_size, 1, 1 << 20, kNone);
  options.number("workers", "N", "threads that load (left out: one a core; 0: none but the main one)", &workers, 0, 256,
                 kNone);
  options.number("threads", "N", "the same as --workers", &threads, 0, 256, kNone);
  options.number("epochs", "N", "measure so many epochs", &epochs, 1, 1 << 20, kNone);
  options.number("seconds", "S", "measure for so long, in five rounds (left out: 5)", &seconds, 0.05, 1e6, kNone);
  options.word("dtype", "of images (left out: fp32)", &dtype, kNone);
  options.toggle("channels-last", "memory layout of images", &channels_last, kNone);
  images.declare(options);
}

void BenchDataOptions::check() const {
  if (workers && threads) throw ConfigError("--workers and --threads: give only one of them");
  if (epochs && seconds) throw ConfigError("--epochs and --seconds: give only one of them");
}

}  // namespace lockstep::apps
