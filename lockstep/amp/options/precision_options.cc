#include "lockstep/amp/options/precision_options.h"

namespace lockstep::amp {
namespace {

double read_loss_scale(const std::string& name, const std::string& text) {
  return text == "dynamic" ? 0 : config::read_number(name, text, 1e-6, 1e12);
}

std::string write_loss_scale(double scale) { return scale == 0 ? "dynamic" : write_number(scale); }

std::string write_switch(bool on) { return on ? "on" : "off"; }

template <typename Level>
void add_amp(config::OptionSet& options, const char* help, Level* level, config::Effect effect) {
  constexpr const char* kLetterO[] = {"did you mean O0, with the letter O?", "did you mean O1, with the letter O?",
                                      "did you mean O2, with the letter O?", "did you mean O3, with the letter O?"};
  options
      .word("amp", help, level, effect,
            {{"00", kLetterO[0]}, {"01", kLetterO[1]}, {"02", kLetterO[2]}, {"03", kLetterO[3]}})
      .bare("auto")
      .off("O0");
}

}  // namespace

void declare_amp(config::OptionSet& options, AmpLevel* level, config::Effect effect) {
  add_amp(options, "mixed precision (bare: auto)", level, effect);
}

void RecordedPrecisionOptions::declare(config::OptionSet& options, config::Effect effect) {
  add_amp(options, "mixed precision (left out: the run's; bare: auto)", &amp, effect);
  options.word("dtype", "the half type of --amp", &dtype, effect);
}

void PrecisionOptions::declare(config::OptionSet& options) {
  using enum config::Effect;
  options.section("Precision");
  declare_amp(options, &amp, kIdentity);
  options.word("dtype", "the half type of --amp", &dtype, kIdentity);
  options.form("loss-scale", "X|dynamic", "loss scale for fp16", &loss_scale, read_loss_scale, write_loss_scale,
               kTrajectory);
  options
      .form("keep-batchnorm-fp32", "on|off", "--amp O2, O3: BatchNorm in fp32 (default: at O2; bare: on)",
            &keep_batchnorm_fp32, config::read_switch, write_switch, kIdentity)
      .bare("on");
}

void PrecisionOptions::check_given(const config::OptionSet& options) const {
  if (amp != AmpLevel::kO0 || !options.find("dtype")->given || options.find("amp")->given) return;
  throw ConfigError("--dtype ", config::word_of(dtype), " goes with --amp; add --amp, or leave it out for fp32");
}

void PrecisionOptions::check(bool resumed) const {
  if (loss_scale != 0 && amp == AmpLevel::kO0) {
    throw ConfigError("--loss-scale goes with --amp; give a level, or leave it out");
  }
  const bool may_cast = amp == AmpLevel::kO2 || amp == AmpLevel::kO3 || (amp == AmpLevel::kAuto && resumed);
  if (keep_batchnorm_fp32 && !may_cast) {
    throw ConfigError("--keep-batchnorm-fp32 goes with --amp O2 and O3, which cast the model; leave it out");
  }
}

}  // namespace lockstep::amp
