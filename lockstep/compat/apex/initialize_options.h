// The keywords of Apex's amp.initialize, with its defaults.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <variant>

#include "lockstep/amp/opt_level.h"

namespace lockstep::apex::amp {

// An unset keyword (None there) takes the level's value, which is Apex's:
//
//                            O0     O1       O2       O3
//   cast_model_type          fp32   fp32     fp16     fp16
//   patch_torch_functions    false  true     false    false
//   keep_batchnorm_fp32      –      –        true     false
//   master_weights           –      –        true     false
//   loss_scale               1      dynamic  dynamic  1
struct InitializeOptions {
  bool enabled = true;  // false: nothing is cast and no loss is scaled, whatever the other keywords say
  std::string opt_level = "O1";
  // Not Apex's, which knows fp16 alone: what is cast becomes bf16 or fp16. Unset: cast_model_type where that is one of
  // them, else fp16.
  std::optional<c10::ScalarType> dtype = {};
  std::optional<c10::ScalarType> cast_model_type = {};  // of the weights: fp32, bf16 or fp16
  std::optional<bool> patch_torch_functions = {};       // operations cast their arguments
  std::optional<bool> keep_batchnorm_fp32 = {};         // of a model that is cast
  std::optional<bool> master_weights = {};              // of a model that is cast
  std::optional<c10::ScalarType> cast_model_outputs = {};
  std::variant<std::monostate, double, std::string> loss_scale = {};  // a static one, or "dynamic"
  std::optional<double> min_loss_scale = {};                          // of a dynamic one; unset: there is no bound
  double max_loss_scale = 16777216;                                   // of a dynamic one
  int num_losses = 1;                                                 // each with a scale of its own
};

// Returns the same in Lockstep's own options. A dynamic loss scale is for fp16: bf16, with the range of fp32, gets
// none. Throws ConfigError for an unknown level, dtype or loss scale, and for a cast_model_type that is not the dtype.
lockstep::amp::Options resolve(const InitializeOptions& options);

}  // namespace lockstep::apex::amp
