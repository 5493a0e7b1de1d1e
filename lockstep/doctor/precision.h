// How fast this machine computes in each precision: a worker measures it, and remembers it for --amp auto.
#pragma once

#include <string>
#include <vector>

namespace lockstep::doctor {

struct Precision {
  double fp32 = 0, bf16 = 0, fp16 = 0;  // GFLOP/s of one thread; 0: it can't compute in it
  std::string chosen = {};              // by --amp auto: "O1 bfloat16"; empty: nothing was measured
  std::string why = {};                 // "5.1 times fp32 here", or why nothing was measured
};

// How it is measured: one process of this command.
std::vector<std::string> precision_command(const std::string& worker);

// From how the worker ended and what it wrote. A pure function.
Precision judge_precision(int exit_code, const std::string& out, const std::string& err);

}  // namespace lockstep::doctor
