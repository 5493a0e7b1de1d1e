// The Pythons of PATH, and where each has PyTorch.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::bundle {

// The paths of all programs called python3 in PATH's folders, in their order, each folder once.
std::vector<std::string> pythons_of_path();

// The folder of that Python's package torch, "" if it has none or can't be run. It isn't imported, and a folder torch
// in the working directory doesn't count. Throws ConfigError if there is no answer within `timeout`. To be called on a
// thread that lives until it returns.
std::string torch_of(const std::string& python, std::chrono::milliseconds timeout = std::chrono::seconds(20));

}  // namespace lockstep::bundle
