// Reports steps whose gradients are not finite: it names the parameter or layer, warns, or ends the run.
#pragma once

#include <string>

#include "lockstep/base/log.h"
#include "lockstep/train/form.h"
#include "lockstep/train/parts.h"

namespace lockstep::train {

// Throws DataError: the first value of this step that is not finite came from `found`, at `where`.
[[noreturn]] void fail_at(const Parts& parts, const std::string& where, const std::string& found);

class NonFinite {
 public:
  // All outlive this.
  NonFinite(const Parts& parts, const Form& form, const Logger& log) : parts_(parts), form_(form), log_(log) {}

  // Called without a loss scaler: warns on rank 0 at the first of such steps and counts them, or throws DataError with
  // --on-nan stop.
  void warn(double loss);
  // Says, at the end of the run, how many steps it were if they were several.
  void tell_count() const;

  // Called for a step that the loss scaler skips. Returns the first parameter whose gradient overflowed at `scale`.
  // Some overflows are normal while the scale settles; it warns after 17 in a row.
  std::string overflow(double loss, double scale) const;

  // Called with --detect-anomaly. `found` is the layer that this rank found, or empty. Throws DataError on all ranks if
  // one of them has found a layer. A collective.
  void tell_anomaly(const std::string& found) const;

 private:
  bool leads() const { return parts_.world->rank() == 0; }

  const Parts& parts_;
  const Form& form_;
  const Logger& log_;
  int64_t count_ = 0, first_ = 0, last_ = 0;  // steps that warn() was called for, counted from 1
};

}  // namespace lockstep::train
