#include "etcd_nodes.h"

#include <gtest/gtest.h>

namespace lockstep::e2e {
namespace {

const Words kLong = {"--steps", std::to_string(kDisturbedSteps), "--epochs", "1000", "--eval-every", "1000epochs"};

}  // namespace

Words disturbed_run(const std::string& out, const Words& more) {
  return Words{bin_folder() + "/lockstep-worker"} + train_words(kLong + Words{"--out", out} + more);
}

const nlohmann::json& undisturbed_outcome() {
  static const nlohmann::json outcome = [] {
    const TempDir dir;
    const auto whole = lockstep(train_words(kLong + Words{"--nproc", "1", "--out", dir / "run"}));
    EXPECT_EQ(whole.exit_code, 0) << whole.err;
    return outcome_of(dir / "run");
  }();
  return outcome;
}

}  // namespace lockstep::e2e
