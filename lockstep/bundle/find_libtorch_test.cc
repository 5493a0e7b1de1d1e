#include "lockstep/bundle/find_libtorch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/bundle/testing/places.h"

namespace lockstep::bundle {
namespace {

using testing::HasSubstr;
using testing_support::refusal;

struct FindLibtorch : Places {
  std::string refused() const {
    return refusal([this] { find_libtorch(root_); });
  }
};

TEST_F(FindLibtorch, TheNamedOneThenThePythonsThenTheOneBesideTheBundle) {
  make_libtorch(root_ + "/libtorch", "2.11.0+cpu");
  FoundLibtorch found = find_libtorch(root_);
  EXPECT_EQ(found.folder, root_ + "/libtorch");
  EXPECT_EQ(found.by, "beside the bundle");

  make_libtorch(dir_ / "site/torch", "2.11.0+cu130");
  make_python(dir_ / "bin", cat("echo torch=", dir_ / "site/torch/__init__.py"));
  found = find_libtorch(root_);
  EXPECT_EQ(found.folder, dir_ / "site/torch");
  EXPECT_EQ(found.by, dir_ / "bin/python3");

  make_libtorch(dir_ / "named", "2.11.2");
  set("LOCKSTEP_TORCH_DIR", dir_ / "site/../named");
  found = find_libtorch(root_);
  EXPECT_EQ(found.folder, dir_ / "named");
  EXPECT_EQ(found.by, "LOCKSTEP_TORCH_DIR");
}

TEST_F(FindLibtorch, InTheFolderThatHasTheBundle) {
  make_libtorch(dir_ / "libtorch", "2.11.0");
  EXPECT_EQ(find_libtorch(root_).folder, dir_ / "libtorch");
}

TEST_F(FindLibtorch, NoneIsAnErrorThatNamesAllThreePlaces) {
  const std::string error = refused();
  for (const char* place : {"no libtorch 2.11 found", "python3", "LOCKSTEP_TORCH_DIR", "bundle/libtorch"}) {
    EXPECT_THAT(error, HasSubstr(place));
  }
}

TEST_F(FindLibtorch, WhatIsNamedMustBeThere) {
  make_libtorch(root_ + "/libtorch", "2.11.0");
  set("LOCKSTEP_TORCH_DIR", dir_ / "empty");
  EXPECT_THAT(refused(), HasSubstr(cat("LOCKSTEP_TORCH_DIR: ", dir_ / "empty", " has no lib/libtorch_cpu.so")));
}

TEST_F(FindLibtorch, AnotherVersionIsRefusedAndNotPassedOver) {
  make_libtorch(root_ + "/libtorch", "2.11.0");
  make_libtorch(dir_ / "site/torch", "2.10.1+cu130");
  make_python(dir_ / "bin", cat("echo torch=", dir_ / "site/torch/__init__.py"));
  EXPECT_THAT(refused(), HasSubstr(cat("libtorch 2.10.1 in ", dir_ / "site/torch", " (", dir_ / "bin/python3",
                                       "): this Lockstep goes with 2.11; ")));
  make_libtorch(dir_ / "site/torch", "");
  EXPECT_THAT(refused(), HasSubstr("libtorch of an unknown version"));
}

}  // namespace
}  // namespace lockstep::bundle
