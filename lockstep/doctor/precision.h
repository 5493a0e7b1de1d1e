// The speed of this machine in each precision. A worker measures it and remembers it for --amp auto.
#pragma once

#include <string>
#include <vector>

namespace lockstep::doctor {

struct Precision {
  double fp32 = 0, bf16 = 0, fp16 = 0;  // GFLOP/s of one thread; 0: not supported here
  std::string chosen = {};              // what --amp auto takes: "O1 bfloat16"; empty: nothing was measured
  std::string why = {};                 // "5.1 times fp32 here", or why nothing was measured
};

// The command that measures; one process runs it.
std::vector<std::string> precision_command(const std::string& worker);

// Reads the result from the worker's exit code and its output. A pure function.
Precision judge_precision(int exit_code, const std::string& out, const std::string& err);

}  // namespace lockstep::doctor
