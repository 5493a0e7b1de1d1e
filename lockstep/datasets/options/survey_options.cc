#include "lockstep/datasets/options/survey_options.h"

#include "lockstep/base/error.h"

namespace lockstep::datasets {

void SurveyOptions::declare(config::OptionSet& options) {
  using enum config::Effect;
  options.flag("quick", "look at headers alone, and decode nothing", &quick, kNone);
  options.flag("verify", "packed data: compare checksums and record counts, open all parts, and do nothing else",
               &verify, kNone);
  options.text("sheet", "FILE.png", "draw 16 samples before and after augmentation, with their masks", &sheet, kNone);
  options.number("size", "PX", "of the sheet's samples, as train's (left out: 224, CIFAR 32, with masks 256)", &size,
                 16, 4096, kNone);
  images.declare(options);
  options.number("seed", "N", "of what is drawn for the sheet, as train's", &seed, 0, int64_t{1} << 62, kNone);
  options.number("workers", "N", "threads (left out: one for each core)", &workers, 1, 256, kNone);
}

void SurveyOptions::check() const {
  if (quick && !sheet.empty()) {
    throw ConfigError("--quick: decodes nothing, and --sheet draws what is decoded; leave one of them out");
  }
  if (verify && (quick || !sheet.empty())) {
    throw ConfigError("--verify: compares checksums and record counts, opens all parts, and does nothing else; leave ",
                      quick ? "--quick" : "--sheet", " out, or ask twice");
  }
}

}  // namespace lockstep::datasets
