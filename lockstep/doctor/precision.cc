#include "lockstep/doctor/precision.h"

#include <nlohmann/json.hpp>

#include "lockstep/base/text.h"
#include "lockstep/doctor/transport.h"

namespace lockstep::doctor {

std::vector<std::string> precision_command(const std::string& worker) {
  return {worker, "bench", "precision", "--json"};
}

Precision judge_precision(int exit_code, const std::string& out, const std::string& err) {
  Precision none;
  none.why = first_error(err);
  if (none.why.empty())
    none.why = exit_code == 0 ? "did not say what it measured" : cat("ended with exit code ", exit_code);
  if (exit_code != 0) return none;
  try {
    const auto found = nlohmann::json::parse(out);
    return {.fp32 = found.at("fp32_gflops").get<double>(),
            .bf16 = found.at("bf16_gflops").get<double>(),
            .fp16 = found.at("fp16_gflops").get<double>(),
            .chosen = found.at("auto").get<std::string>(),
            .why = found.at("why").get<std::string>()};
  } catch (const nlohmann::json::exception&) {
    return none;
  }
}

}  // namespace lockstep::doctor
