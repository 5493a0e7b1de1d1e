// A bundle's bin/lockstep-worker, which torchrun, Slurm or mpirun may start: it finds libtorch, then becomes
// libexec/lockstep-worker under the same process number, or after `--program NAME` another program there.
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/base/run_main.h"
#include "lockstep/bundle/environment.h"

namespace lockstep {
namespace {

[[noreturn]] void become(char** argv) {
  const auto root = bundle::own_bundle();
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  if (!root)
    throw ConfigError(self.string(), ": not in a bundle: ../libexec/lockstep-worker is not there; unpack all of it");
  std::string name = "lockstep-worker";
  if (argv[1] != nullptr && argv[1] == std::string("--program")) {
    if (argv[2] == nullptr) throw ConfigError("--program: which one of ", *root, "/libexec?");
    name = argv[2];
    argv += 2;
  }
  bundle::prepare_environment(*root);
  const std::string program = *root + "/libexec/" + name;
  argv[0] = const_cast<char*>(program.c_str());
  NodeMemory::keep_on_exec();
  execv(program.c_str(), argv);
  throw IoError(program, ": can't be started: ", errno_text(errno));
}

}  // namespace
}  // namespace lockstep

int main(int, char** argv) {
  return lockstep::run_main([argv]() -> int { lockstep::become(argv); });
}
