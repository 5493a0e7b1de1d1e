// The options of `bench pipeline`.
#pragma once

#include <string>

#include "lockstep/config/option_set.h"

namespace lockstep::apps {

struct BenchPipelineOptions {
  int micro_batches = 0;  // of a step; 0: 1, 2, 4, 8 and 16
  int rows = 512;         // of a micro-batch
  int width = 512;        // of every layer
  int layers = 8;         // of the whole network
  double layer_ms = 0;    // each layer sleeps so long besides in forward, and twice that in backward
  bool recompute = false;
  std::string trace = "";  // the file that the last steps are drawn into, or empty

  void declare(config::OptionSet& options) {
    using enum config::Effect;
    options.number("micro-batches", "N", "of a step (0: 1, 2, 4, 8 and 16)", &micro_batches, 0, 1024, kNone);
    options.number("rows", "N", "of a micro-batch", &rows, 1, 1 << 20, kNone);
    options.number("width", "N", "of every layer", &width, 1, 1 << 16, kNone);
    options.number("layers", "N", "Linear layers of the whole network", &layers, 1, 4096, kNone);
    options.number("layer-ms", "MS",
                   "that a layer sleeps in forward, and twice that in backward, as if a device computed it", &layer_ms,
                   0.0, 1000.0, kNone);
    options.flag("recompute", "compute activations again in backward", &recompute, kNone);
    options.text("trace", "FILE", "record the last step of each row for chrome://tracing or ui.perfetto.dev", &trace,
                 kNone);
  }
};

}  // namespace lockstep::apps
