#include "lockstep/compat/apex/initialize_options.h"

#include <limits>

#include "lockstep/base/error.h"

namespace lockstep::apex::amp {
namespace {

using lockstep::amp::OptLevel;

// O3's is 1 under Apex's name. bf16 has none anyway.
std::optional<double> static_scale(const InitializeOptions& options, OptLevel level, c10::ScalarType dtype) {
  if (options.loss_scale.index() == 0 && level == OptLevel::kO3 && dtype == c10::ScalarType::Half) return 1;
  if (const auto* scale = std::get_if<double>(&options.loss_scale)) return *scale;
  const auto* name = std::get_if<std::string>(&options.loss_scale);
  if (name != nullptr && *name != "dynamic") {
    throw ConfigError("amp: loss_scale \"", *name, "\": expected a number or \"dynamic\"");
  }
  return std::nullopt;
}

}  // namespace

lockstep::amp::Options resolve(const InitializeOptions& options) {
  if (!options.enabled) return {.opt_level = lockstep::amp::OptLevel::kO0, .num_losses = options.num_losses};
  const auto type = options.cast_model_type;
  const bool casts = type && *type != c10::ScalarType::Float;
  if (casts && options.dtype && *options.dtype != *type) {
    throw ConfigError("amp: cast_model_type ", c10::toString(*type), " and dtype ", c10::toString(*options.dtype),
                      ": give one of them, or the same");
  }
  const OptLevel level = lockstep::amp::parse_opt_level(options.opt_level);
  const auto dtype = options.dtype.value_or(casts ? *type : c10::ScalarType::Half);
  lockstep::amp::Options resolved{.opt_level = level,
                                  .dtype = dtype,
                                  .cast_ops = options.patch_torch_functions.value_or(level == OptLevel::kO1),
                                  .keep_batchnorm_fp32 = options.keep_batchnorm_fp32,
                                  .master_weights = options.master_weights,
                                  .cast_model_outputs = options.cast_model_outputs,
                                  .loss_scale = static_scale(options, level, dtype),
                                  .min_loss_scale = options.min_loss_scale.value_or(std::numeric_limits<double>::min()),
                                  .max_loss_scale = options.max_loss_scale,
                                  .num_losses = options.num_losses};
  if (type) resolved.cast_model = casts;
  return resolved;
}

}  // namespace lockstep::apex::amp
