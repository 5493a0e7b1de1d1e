#include "lockstep/train/bad_sample_advice.h"

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

// Twice as many as are known: where some are bad, more are.
void tell_remedy(const Parts& parts, int64_t met) {
  parts.world->self().remedy.set(cat("--skip-bad ", 2 * std::max<int64_t>(1, met)));
}

}  // namespace

void with_advice(const Parts& parts, const std::function<void()>& act) {
  try {
    act();
  } catch (const DataError& error) {
    if (parts.skipped != nullptr) {
      if (parts.skipped->met() > parts.skipped->most()) tell_remedy(parts, parts.skipped->met());
      throw;
    }
    if (parts.options.parallel.form == parallel::ParallelForm::kPipeline) throw;  // whose check refuses --skip-bad
    tell_remedy(parts, std::ssize(parts.state.skipped));
    throw DataError(error.what(),
                    " (--skip-bad N passes over up to N such samples; a run can't be resumed on changed "
                    "files)");
  }
}

}  // namespace lockstep::train
