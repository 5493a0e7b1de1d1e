#include "lockstep/amp/opt_level.h"

#include "lockstep/base/error.h"

namespace lockstep::amp {

OptLevel parse_opt_level(std::string_view name) {
  if (name == "O0") return OptLevel::kO0;
  if (name == "O1") return OptLevel::kO1;
  std::string hint = "expected O0 or O1";
  if (name == "O2" || name == "O3") hint = "not available yet; use O0 or O1";
  if (name.size() == 2 && (name[0] == '0' || name[0] == 'o') && name[1] >= '0' && name[1] <= '3') {
    hint = cat("did you mean O", name[1], ", with the letter O?");
  }
  throw ConfigError("opt level ", name, ": ", hint);
}

std::string Policy::name() const {
  if (!casts()) return "O0 float32";
  return dtype == c10::ScalarType::Half ? "O1 float16" : "O1 bfloat16";
}

OptLevel auto_level(const CpuFeatures& features) {
  return features.amx_bf16 || features.avx512_bf16 ? OptLevel::kO1 : OptLevel::kO0;
}

}  // namespace lockstep::amp
