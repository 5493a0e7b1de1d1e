// The libraries below Lockstep: the versions that this machine has, and the pairs that don't fit together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/doctor/version.h"

namespace lockstep::doctor {

struct Gpu {
  std::string name;    // "NVIDIA H200"
  uint64_t bytes = 0;  // of memory
};

// An empty optional or "" means that the library is not there.
struct Software {
  std::optional<Version> libtorch;
  std::optional<Version> built_against;  // the libtorch whose headers Lockstep was compiled with
  std::optional<Version> libtorch_cuda;  // the CUDA that it was built for
  std::optional<Version> driver;         // NVIDIA's, 580.82
  std::optional<Version> driver_cuda;    // the newest CUDA that it offers
  std::optional<Version> runtime;        // CUDA's, the one that libtorch brings
  std::optional<Version> toolkit;        // nvcc's, on PATH
  std::optional<Version> cudnn, nccl;
  std::string mpi;  // "Open MPI v4.1.4"
  std::string torch_folder;
  std::string torch_named;              // in a bundle: the folder, and what named it; "" elsewhere
  std::vector<Gpu> gpus;                // of the machine
  int usable_gpus = 0;                  // that the driver and CUDA_VISIBLE_DEVICES leave a process
  std::vector<std::string> unloadable;  // libraries of lockstep-worker, as loader_misfits() describes them
};

// Opens the libraries and asks them. `torch_folder` is libtorch's, "" if there is none. Never throws.
Software find_software(const std::string& torch_folder);

// Describes each pair that doesn't fit in one line: which, why, what to do. A pure function.
std::vector<std::string> misfits(const Software& software);

}  // namespace lockstep::doctor
