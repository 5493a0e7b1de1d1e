#include "lockstep/amp/opt_level.h"

#include "lockstep/base/error.h"

namespace lockstep::amp {

OptLevel parse_opt_level(std::string_view name) {
  for (const auto level : {OptLevel::kO0, OptLevel::kO1, OptLevel::kO2, OptLevel::kO3}) {
    if (name == name_of(level)) return level;
  }
  std::string hint = "expected O0, O1, O2 or O3";
  if (name.size() == 2 && (name[0] == '0' || name[0] == 'o') && name[1] >= '0' && name[1] <= '3') {
    hint = cat("did you mean O", name[1], ", with the letter O?");
  }
  throw ConfigError("opt level ", name, ": ", hint);
}

const char* name_of(OptLevel level) {
  constexpr const char* kNames[] = {"O0", "O1", "O2", "O3"};
  return kNames[static_cast<size_t>(level)];
}

std::string Policy::name() const {
  const Policy plain{.level = level, .dtype = dtype};
  const bool narrow = casts() || plain.casts();
  const char* type = !narrow ? "float32" : dtype == c10::ScalarType::Half ? "float16" : "bfloat16";
  std::string text = cat(name_of(level), ' ', type);
  const auto differs = [&](bool value, bool usual, const char* on, const char* off) {
    if (value != usual) text += cat(", ", value ? on : off);
  };
  differs(cast_model, plain.cast_model, "model cast", "model in float32");
  differs(cast_ops, plain.cast_ops, "operations cast", "operations not cast");
  differs(keep_batchnorm_fp32, plain.keep_batchnorm_fp32, "BatchNorm in float32", "BatchNorm too");
  differs(master_weights, plain.master_weights, "float32 masters", "no masters");
  return text;
}

Policy make_policy(const Options& options) {
  if (options.dtype != c10::ScalarType::BFloat16 && options.dtype != c10::ScalarType::Half) {
    throw ConfigError("amp: dtype ", c10::toString(options.dtype), ": expected BFloat16 or Half");
  }
  Policy policy{.level = options.opt_level, .dtype = options.dtype};
  policy.cast_model = options.cast_model.value_or(policy.cast_model);
  policy.cast_ops = options.cast_ops.value_or(policy.cast_ops);
  const auto resolve = [&](const char* name, const std::optional<bool>& asked, bool& value) {
    if (asked && !policy.cast_model) {
      throw ConfigError("amp: ", name, " at ", name_of(policy.level),
                        ": goes with O2 and O3, which cast the model; leave it out");
    }
    value = policy.cast_model && asked.value_or(value);
  };
  resolve("keep_batchnorm_fp32", options.keep_batchnorm_fp32, policy.keep_batchnorm_fp32);
  resolve("master_weights", options.master_weights, policy.master_weights);
  return policy;
}

ScalerOptions scaler_options(const Options& options) {
  ScalerOptions scaler;
  const bool asked = options.loss_scale.has_value(), casts = make_policy(options).casts();
  if (asked && !casts) throw ConfigError("amp: loss_scale at O0, which casts nothing: leave it out, or take O1 to O3");
  scaler.enabled = casts && (asked || options.dtype == c10::ScalarType::Half);
  scaler.dynamic = !asked;
  scaler.min_scale = options.min_loss_scale;
  scaler.max_scale = options.max_loss_scale;
  scaler.hysteresis = options.hysteresis;
  if (asked) scaler.init_scale = *options.loss_scale;
  scaler.check();
  return scaler;
}

}  // namespace lockstep::amp
