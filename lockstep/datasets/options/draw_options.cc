#include "lockstep/datasets/options/draw_options.h"

namespace lockstep::datasets {

void DrawOptions::declare(config::OptionSet& options) {
  using enum config::Effect;
  options.number("samples", "N", "to train on; a tenth as many shapes come on top, to validate on", &samples, 1,
                 1'000'000, kNone);
  options.number("size", "PX", "of the images' sides", &size, 16, 4096, kNone);
  options.number("seed", "N", "gives other images", &seed, 0, int64_t{1} << 62, kNone);
}

}  // namespace lockstep::datasets
