// Tests with a world of one rank on a GPU. They begin with LOCKSTEP_NEEDS_GPU(), which skips them on a machine without.
#pragma once

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <memory>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "lockstep/base/testing/gpu.h"
#include "lockstep/comm/plugins/nccl_plugin.h"
#include "lockstep/comm/single_communicator.h"

namespace lockstep::comm::testing {

// Of `options`, what makes it a world of one is filled in.
inline std::unique_ptr<Communicator> make_nccl_world(NcclOptions options = {.timeout = std::chrono::seconds(60)}) {
  const auto make =
      plugin_function<decltype(lockstep_make_nccl_communicator)>(kCudaPlugin, "lockstep_make_nccl_communicator");
  options.host = std::make_unique<SingleCommunicator>();
  options.store = c10::make_intrusive<c10d::HashStore>();
  options.ranks = {{.host = "here"}};
  return std::unique_ptr<Communicator>(make(options));
}

}  // namespace lockstep::comm::testing
