// Tests with a world of one rank on a GPU. They begin with LOCKSTEP_NEEDS_GPU(), which skips them on a machine without.
#pragma once

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "lockstep/base/error.h"
#include "lockstep/comm/plugins/nccl_plugin.h"
#include "lockstep/comm/single_communicator.h"

namespace lockstep::comm::testing {

inline std::unique_ptr<Communicator> make_nccl_world(std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  const auto make =
      plugin_function<decltype(lockstep_make_nccl_communicator)>(kCudaPlugin, "lockstep_make_nccl_communicator");
  NcclOptions options{.host = std::make_unique<SingleCommunicator>(),
                      .store = c10::make_intrusive<c10d::HashStore>(),
                      .ranks = {{.host = "here"}},
                      .timeout = timeout};
  return std::unique_ptr<Communicator>(make(options));
}

// The reason why this machine can't have such a world; empty if it can.
inline std::string why_no_gpu() {
  try {
    make_nccl_world();
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

#define LOCKSTEP_NEEDS_GPU() \
  if (const std::string why = testing::why_no_gpu(); !why.empty()) GTEST_SKIP() << "needs a GPU: " << why

}  // namespace lockstep::comm::testing
