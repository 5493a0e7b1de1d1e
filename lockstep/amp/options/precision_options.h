// The options of a run's precision: opt level, dtype and loss scale.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "lockstep/config/option_set.h"

namespace lockstep::amp {

enum class AmpLevel { kO0, kO1, kO2, kO3, kAuto };
constexpr auto words(AmpLevel) {
  return std::to_array<config::Word<AmpLevel>>({{AmpLevel::kO0, "O0"},
                                                {AmpLevel::kO1, "O1"},
                                                {AmpLevel::kO2, "O2"},
                                                {AmpLevel::kO3, "O3"},
                                                {AmpLevel::kAuto, "auto"}});
}

enum class HalfType { kBf16, kFp16 };
constexpr auto words(HalfType) {
  return std::to_array<config::Word<HalfType>>({{HalfType::kBf16, "bf16"}, {HalfType::kFp16, "fp16"}});
}

// Declares --amp [LEVEL], the same for every command that has it.
void declare_amp(config::OptionSet& options, AmpLevel* level, config::Effect effect);

// The level and half type of a command that is about a run's checkpoint: unset, they are the run's.
struct RecordedPrecisionOptions {
  std::optional<AmpLevel> amp;
  std::optional<HalfType> dtype;

  void declare(config::OptionSet& options, config::Effect effect);
};

struct PrecisionOptions {
  AmpLevel amp = AmpLevel::kO0;
  HalfType dtype = HalfType::kBf16;         // with amp
  double loss_scale = 0;                    // 0: dynamic
  std::optional<bool> keep_batchnorm_fp32;  // at O2 and O3; unset: the level's

  void declare(config::OptionSet& options);
  // Throws ConfigError for a half type that the user has asked for in a run that has no mixed precision. `options` are
  // those that declare() has declared.
  void check_given(const config::OptionSet& options) const;
  // Throws ConfigError for options that don't go together. `resumed`: auto stands for the checkpoint's level, which may
  // also be O2 or O3.
  void check(bool resumed) const;
};

}  // namespace lockstep::amp
