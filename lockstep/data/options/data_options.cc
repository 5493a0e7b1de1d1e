#include "lockstep/data/options/data_options.h"

#include "lockstep/base/error.h"

namespace lockstep::data {

void DataOptions::declare(config::OptionSet& options) {
  using enum config::Effect;
  options.section("Data");
  // A folder may move: a checkpoint records its samples' number and shape.
  options.text("data", "DIR", "folder of the data set (left out: data made on the spot)", &path, kNone);
  options.number("validation", "PCT", "percent of the training data held out", &validation, 0, 90, kIdentity);
  options
      .text("hold-out", "FILE,…", "these instead: names of samples' files, or patterns such as 2?.png", &hold_out,
            kIdentity)
      .stands_for("validation");
  options.number("workers", "N", "threads a process that load data", &workers, 0, 256, kNone);
  // It only says when the run ends: what takes a bad sample's place does not depend on it.
  options.number("skip-bad", "N", "pass over up to N samples that can't be read (0: end at the first)", &skip_bad, 0,
                 1'000'000, kNone);
  options.flag("drop-last", "leave out an epoch's last batch if it is smaller", &drop_last, kIdentity);
}

void DataOptions::check() const {
  if (hold_out.empty() || validation.value_or(0) == 0) return;
  throw ConfigError("--hold-out ", hold_out, ": holds these out in place of a share, and --validation ", *validation,
                    " asks for one; leave one of them out");
}

}  // namespace lockstep::data
