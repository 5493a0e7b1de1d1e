#include "lockstep/amp/auto_level.h"

#include <array>
#include <cstdio>

#include "lockstep/base/text.h"

namespace lockstep::amp {
namespace {

constexpr double kWorthCasting = 1.1, kWorthALossScale = 1.2;

std::string times(double ratio) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f times fp32 here", ratio);
  return text.data();
}

}  // namespace

AutoChoice auto_level(const Rates& rates) {
  if (rates.fp32 <= 0) return auto_level(detect_cpu_features());
  const bool fp16 = rates.fp16 > kWorthALossScale * rates.bf16;
  const double gain = (fp16 ? rates.fp16 : rates.bf16) / rates.fp32;
  if (gain < kWorthCasting) return {{}, cat("16 bits are ", times(gain))};
  return {{.level = OptLevel::kO1, .dtype = fp16 ? at::kHalf : at::kBFloat16}, times(gain)};
}

AutoChoice auto_level(const CpuFeatures& features) {
  if (features.amx_bf16 || features.avx512_bf16) return {{.level = OptLevel::kO1}, "this CPU multiplies bf16"};
  if (features.avx512_fp16) return {{.level = OptLevel::kO1, .dtype = at::kHalf}, "this CPU multiplies fp16"};
  return {{}, "this CPU multiplies no 16-bit numbers"};
}

AutoChoice auto_level() { return auto_level(rates_of_this_machine()); }

std::string slow_warning(const Policy& policy, const CpuFeatures& features, const std::optional<Rates>& rates) {
  if (!policy.casts()) return "";
  const bool half = policy.dtype == at::kHalf;
  if (rates) {
    const double ratio = (half ? rates->fp16 : rates->bf16) / rates->fp32;
    if (ratio >= 1) return "";
    std::array<char, 128> text{};
    std::snprintf(text.data(), text.size(), "%s is slow here: a convolution runs at %.2g of its speed in fp32",
                  half ? "float16" : "bfloat16", ratio);
    return cat(text.data(), "; --amp auto takes what is fastest");
  }
  if (half ? features.avx512_fp16 : features.amx_bf16 || features.avx512_bf16) return "";
  return cat("this CPU has no ", half ? "AVX512-FP16" : "AMX or AVX512-BF16", ": ", half ? "float16" : "bfloat16",
             " works, but slower than fp32; --amp auto takes what is fastest here");
}

}  // namespace lockstep::amp
