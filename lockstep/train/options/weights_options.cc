#include "lockstep/train/options/weights_options.h"

namespace lockstep::train {

void WeightsOptions::declare(config::OptionSet& options, const std::string& what) {
  using enum config::Effect;
  options.text("load", "FILE", what, &load, kNone);
  options.text("strip-prefix", "TEXT", "take the names of weights that begin with it, without it (model.)",
               &strip_prefix, kNone);
  options.flag("ignore-unknown", "leave out objects of unknown classes (nothing in a file is called)", &ignore_unknown,
               kNone);
  options.word("average", "take the weights' average (ema, state_dict_ema, model_ema); auto: where the file has one",
               &average, kNone);
}

void WeightsOptions::declare_start(config::OptionSet& options) {
  using enum config::Effect;
  options.text("load", "FILE", "weights to start from", &load, kNone).of_one_start();
  options
      .text("strip-prefix", "TEXT", "of --load: take the names that begin with it, without it (model.)", &strip_prefix,
            kNone)
      .of_one_start();
  options
      .flag("ignore-unknown", "with --load: leave out objects of unknown classes (nothing in a file is called)",
            &ignore_unknown, kNone)
      .of_one_start();
  options
      .word("load-average", "of --load: take the weights' average (ema, state_dict_ema, model_ema); auto: off",
            &average, kNone)
      .of_one_start();
  options
      .flag("load-partly", "of --load: take what fits, and name what does not (a head for other classes)", &partly,
            kNone)
      .of_one_start();
}

}  // namespace lockstep::train
