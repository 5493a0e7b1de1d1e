// Opt levels, as Apex named them, and the properties that each one sets.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/amp/loss_scaler.h"

namespace lockstep::amp {

// O0: fp32. O1: fp32 weights; operations that gain by it compute in 16 bits (autocast). O2: 16-bit weights but for
// BatchNorm's, with fp32 masters that the optimizer steps. O3: everything in 16 bits.
enum class OptLevel { kO0, kO1, kO2, kO3 };

// "O0" to "O3". Throws ConfigError for anything else: 01 has a zero for its letter.
OptLevel parse_opt_level(std::string_view name);
const char* name_of(OptLevel level);

// The precision of a model: the properties of its opt level, resolved.
struct Policy {
  OptLevel level = OptLevel::kO0;
  c10::ScalarType dtype = c10::ScalarType::BFloat16;  // of what is cast: bf16 or fp16
  bool cast_ops = level != OptLevel::kO0;             // autocast is on in forward passes
  bool cast_model = level >= OptLevel::kO2;           // weights and buffers are of `dtype`
  bool keep_batchnorm_fp32 = level == OptLevel::kO2;  // BatchNorm's stay fp32
  bool master_weights = level == OptLevel::kO2;       // the optimizer steps fp32 copies of 16-bit weights

  bool casts() const { return cast_ops || cast_model; }
  // For people and checkpoints: "O0 float32", "O1 bfloat16", "O2 float16, BatchNorm too".
  std::string name() const;
};

// The options of Apex's initialize. An unset property (None there) takes the level's value.
struct Options {
  OptLevel opt_level = OptLevel::kO1;
  c10::ScalarType dtype = c10::ScalarType::BFloat16;       // of what is cast: bf16 or fp16
  std::optional<bool> cast_model = {};                     // cast_model_type: weights of `dtype`, or fp32
  std::optional<bool> cast_ops = {};                       // patch_torch_functions
  std::optional<bool> keep_batchnorm_fp32 = {};            // of a model that is cast
  std::optional<bool> master_weights = {};                 // of a model that is cast
  std::optional<c10::ScalarType> cast_model_outputs = {};  // of forward(); unset: fp32
  std::optional<double> loss_scale = {};  // a static one; unset: dynamic for fp16, and none for bf16, which has the
                                          // range of fp32
  double min_loss_scale = 1, max_loss_scale = 16777216;  // of a dynamic one
  int hysteresis = 1;                                    // overflows before it backs off
  int num_losses = 1;                                    // each with a scale of its own
};

// Resolves the options. Throws ConfigError that names the property for options that do not go together, and for a dtype
// other than bf16 and fp16.
Policy make_policy(const Options& options);
// Returns the options of one loss's scaler.
ScalerOptions scaler_options(const Options& options);

}  // namespace lockstep::amp
