// libtorch's folder: the one that a program's libraries are from, and what the folder says of itself.
#pragma once

#include <optional>
#include <string>

#include "lockstep/doctor/version.h"

namespace lockstep::doctor {

// An empty optional means that the folder does not say it.
struct Libtorch {
  std::optional<Version> version;
  std::optional<Version> cuda;  // that it was built for; none for a libtorch of the CPU
};

// Reads version.py (PyTorch's package) or build-version (libtorch's archive) in `folder`. Starts no Python.
Libtorch read_libtorch(const std::string& folder);

// The version whose headers Lockstep was compiled with.
std::optional<Version> libtorch_built_against();

// The folder whose lib/ has the libtorch_cpu.so of the loader's list (loader.h); "" if the loader found none.
std::string libtorch_of_list(const std::string& list);

}  // namespace lockstep::doctor
