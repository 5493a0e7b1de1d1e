// The end of a loop whose metric no longer improves.
#pragma once

#include <cstdint>
#include <limits>

#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/checkpoint/formats/value_view.h"

namespace lockstep::loop {

struct EarlyStoppingOptions {
  int64_t patience = 10;  // metrics in a row that may fail to improve before the loop is to end; 0: it never is
  double min_delta = 0;   // a metric has to be better than the best by more than this
  bool lower_is_better = false;
};

// A part of a loop's state (part.h). One thread.
class EarlyStopping {
 public:
  EarlyStopping() : EarlyStopping(EarlyStoppingOptions{}) {}
  // Throws ConfigError for a patience or a delta below 0.
  explicit EarlyStopping(const EarlyStoppingOptions& options);

  // Takes the next metric, equal on all ranks. Returns whether it is the best so far; NaN never is.
  bool observe(double metric);

  bool ended() const { return options_.patience > 0 && failures_ >= options_.patience; }
  double best() const { return best_; }           // before the first metric worse than any
  int64_t failures() const { return failures_; }  // metrics in a row that did not improve

  checkpoint::Dict state_dict() const;
  // Throws DataError, and ConfigError if it was saved where the other direction is better.
  void check_state_dict(const checkpoint::ValueView& saved) const;
  void load_state_dict(const checkpoint::ValueView& saved);

 private:
  EarlyStoppingOptions options_;
  double best_;
  int64_t failures_ = 0;
};

}  // namespace lockstep::loop
