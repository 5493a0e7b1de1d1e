#include "lockstep/schedule/lr_scale.h"

#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::schedule {

double linear_lr_factor(int64_t global_batch, int64_t base) {
  if (global_batch < 1 || base < 1) throw BugError("a rate for ", base, " samples scaled to ", global_batch);
  return static_cast<double>(global_batch) / static_cast<double>(base);
}

double sqrt_lr_factor(int64_t global_batch, int64_t base) { return std::sqrt(linear_lr_factor(global_batch, base)); }

}  // namespace lockstep::schedule
