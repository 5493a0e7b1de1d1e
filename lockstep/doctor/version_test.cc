#include "lockstep/doctor/version.h"

#include <gtest/gtest.h>

namespace lockstep::doctor {
namespace {

std::string found(std::string_view text) {
  const auto version = find_version(text);
  return version ? version->text() : "none";
}

TEST(Version, IsFoundInText) {
  EXPECT_EQ(found("__version__ = '2.11.0+cu130'"), "2.11.0");
  EXPECT_EQ(found("Cuda compilation tools, release 12.4, V12.4.131"), "12.4");
  EXPECT_EQ(found("Open MPI v4.1.4, package: Debian OpenMPI"), "4.1.4");
  EXPECT_EQ(found("(c) 2005-2024 NVIDIA, 580.82.07"), "580.82.7");
  EXPECT_EQ(found("none at all"), "none");
  EXPECT_EQ(found("99999999999999999999.1"), "none");
  EXPECT_EQ(found("7."), "none");
}

TEST(Version, OfCudaIsOneNumber) {
  EXPECT_EQ(cuda_version(13000).text(), "13.0");
  EXPECT_EQ(cuda_version(12040).text(), "12.4");
  EXPECT_LT(cuda_version(12040), cuda_version(13000));
}

}  // namespace
}  // namespace lockstep::doctor
