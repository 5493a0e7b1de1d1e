// Starts a bundle's programs that load libtorch: it finds libtorch, then becomes the program of its own name in
// libexec/, under the same process number. As bin/lockstep-worker it may be started by torchrun, Slurm or mpirun. Under
// the name lockstep-start its first argument names the program.
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/run_main.h"
#include "lockstep/bundle/environment.h"

namespace lockstep {
namespace {

[[noreturn]] void become(char** argv) {
  const auto root = bundle::own_bundle();
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  if (!root)
    throw ConfigError(self.string(), ": not in a bundle: ../libexec/lockstep-worker is not there; unpack all of it");
  std::string name = self.filename();
  if (name == "lockstep-start") {
    if (argv[1] == nullptr) throw ConfigError("lockstep-start: which program of ", *root, "/libexec?");
    name = *++argv;
  }
  bundle::prepare_environment(*root);
  const std::string program = *root + "/libexec/" + name;
  argv[0] = const_cast<char*>(program.c_str());
  execv(program.c_str(), argv);
  throw IoError(program, ": can't be started: ", errno_text(errno));
}

}  // namespace
}  // namespace lockstep

int main(int, char** argv) {
  return lockstep::run_main([argv]() -> int { lockstep::become(argv); });
}
