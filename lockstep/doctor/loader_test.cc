#include "lockstep/doctor/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::doctor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kSound =
    "\tlinux-vdso.so.1 (0x00007ffd)\n"
    "\tlibstdc++.so.6 => /lib/x86_64-linux-gnu/libstdc++.so.6 (0x00007f)\n"
    "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n";

TEST(Loader, FindsAllThatThisProgramNeeds) { EXPECT_THAT(loader_misfits(kSound, "/opt/conda/lib"), IsEmpty()); }

TEST(Loader, AnOlderLibraryThatIsFoundFirstIsNamedOnce) {
  const std::string list =
      "bin/lockstep-worker: /opt/conda/lib/libstdc++.so.6: version `GLIBCXX_3.4.9' not found (required by "
      "bin/lockstep-worker)\n"
      "bin/lockstep-worker: /opt/conda/lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by "
      "bin/lockstep-worker)\n"
      "bin/lockstep-worker: /opt/conda/lib/libstdc++.so.6: version `GLIBCXX_3.4.22' not found (required by "
      "libtorch_cpu.so)\n"
      "bin/lockstep-worker: /opt/conda/lib/libstdc++.so.6: version `CXXABI_1.3.13' not found (required by libc10.so)\n"
      "\tlibstdc++.so.6 => /opt/conda/lib/libstdc++.so.6 (0x00007f)\n";
  const std::string old =
      "libstdc++.so.6: the loader finds /opt/conda/lib/libstdc++.so.6, which is too old: it has no GLIBCXX_3.4.30; ";
  const std::string out =
      "take /opt/conda/lib out of LD_LIBRARY_PATH (conda deactivate, module unload), or put the folder of the newer "
      "one before it";
  EXPECT_THAT(loader_misfits(list, "/opt/other::/opt/conda/lib/"), ElementsAre(old + out));
  EXPECT_THAT(loader_misfits(list, "/opt/conda"), ElementsAre(old + "install a newer one"));
}

TEST(Loader, AMissingLibraryIsNamed) {
  EXPECT_THAT(loader_misfits("\tlibzip.so.4 => not found\n" + std::string(kSound), ""),
              ElementsAre("libzip.so.4: not found; install it, or add its folder to LD_LIBRARY_PATH"));
}

TEST(Loader, IsAskedByACommand) {
  EXPECT_THAT(loader_command("a"), ElementsAre("env", "LD_TRACE_LOADED_OBJECTS=1", "a"));
}

}  // namespace
}  // namespace lockstep::doctor
