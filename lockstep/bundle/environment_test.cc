#include "lockstep/bundle/environment.h"

#include <gtest/gtest.h>

#include "lockstep/bundle/testing/places.h"

namespace lockstep::bundle {
namespace {

struct Environment : Places {};

TEST_F(Environment, OfAProgramInABuildIsNoBundles) { EXPECT_FALSE(own_bundle()); }

TEST_F(Environment, LibtorchComesFirstAndWhatWasThereLast) {
  make_libtorch(dir_ / "torch", "2.11.0");
  set("LOCKSTEP_TORCH_DIR", dir_ / "torch");
  prepare_environment(root_);
  EXPECT_EQ(env("LD_LIBRARY_PATH"), dir_ / "torch/lib");
  EXPECT_EQ(env("LOCKSTEP_LIBTORCH"), cat(dir_ / "torch", " (LOCKSTEP_TORCH_DIR)"));
  set("LD_LIBRARY_PATH", "/opt/mpi/lib:/opt/more");
  write(root_ + "/lib/gcc/libstdc++.so.6", "GLIBCXX_3.4.999");
  prepare_environment(root_);
  EXPECT_EQ(env("LD_LIBRARY_PATH"), cat(root_, "/lib/gcc:", dir_ / "torch/lib", ":/opt/mpi/lib:/opt/more"));
}

}  // namespace
}  // namespace lockstep::bundle
