#include "lockstep/doctor/libtorch.h"

#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::doctor {
namespace {

using testing_support::TempDir;

TEST(LibtorchFolder, OfThePackageSaysItsVersionAndItsCuda) {
  const TempDir dir;
  std::ofstream(dir / "version.py") << "from typing import Optional\n\n__all__ = ['__version__', 'cuda']\n"
                                       "__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\n";
  std::ofstream(dir / "build-version") << "1.2.3\n";
  const Libtorch found = read_libtorch(dir.path());
  EXPECT_EQ(found.version, (Version{2, 11, 0}));
  EXPECT_EQ(found.cuda, (Version{13, 0}));
}

TEST(LibtorchFolder, OfTheArchiveSaysItsVersion) {
  const TempDir dir;
  EXPECT_FALSE(read_libtorch(dir.path()).version);
  std::ofstream(dir / "build-version") << "2.11.0+cpu\n";
  EXPECT_EQ(read_libtorch(dir.path()).version, (Version{2, 11, 0}));
  EXPECT_FALSE(read_libtorch(dir.path()).cuda);
}

TEST(LibtorchFolder, IsTheOneThatTheLoaderTakes) {
  EXPECT_EQ(libtorch_of_list("\tlibc10.so => /a/lib/libc10.so (0x7f)\n"
                             "\tlibtorch_cpu.so => /a b/site-packages/torch/lib/libtorch_cpu.so (0x7f)\n"),
            "/a b/site-packages/torch");
  EXPECT_EQ(libtorch_of_list("\tlibtorch_cpu.so => /bundle/lib/../libtorch/lib/libtorch_cpu.so (0x7f)\n"),
            "/bundle/libtorch");
  EXPECT_EQ(libtorch_of_list("\tlibtorch_cpu.so => not found\n"), "");
  EXPECT_EQ(libtorch_of_list(""), "");
}

}  // namespace
}  // namespace lockstep::doctor
