#include "lockstep/base/cpu_features.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace lockstep {

CpuFeatures parse_cpu_features(std::string_view cpuinfo) {
  CpuFeatures features;
  std::istringstream lines{std::string(cpuinfo)};
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    if (line.rfind("model name", 0) == 0) features.model = line.substr(std::min(line.size(), colon + 2));
    if (line.rfind("flags", 0) != 0) continue;
    std::istringstream words(line.substr(colon + 1));
    for (std::string word; words >> word;) {
      features.amx_bf16 |= word == "amx_bf16";
      features.amx_fp16 |= word == "amx_fp16";
      features.avx512_bf16 |= word == "avx512_bf16";
      features.avx512_fp16 |= word == "avx512_fp16";
      features.avx512 |= word == "avx512f";
    }
    break;  // all cores are alike
  }
  return features;
}

CpuFeatures detect_cpu_features() {
  std::ostringstream text;
  text << std::ifstream("/proc/cpuinfo").rdbuf();
  return parse_cpu_features(text.str());
}

}  // namespace lockstep
