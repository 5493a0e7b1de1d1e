#include "lockstep/launch/spawn.h"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <utility>

#include "lockstep/base/board.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/run_main.h"
#include "lockstep/launch/environment.h"
#include "lockstep/launch/spawn_arguments.h"
#include "lockstep/launch/spawned_ranks.h"

namespace lockstep {
namespace {

constexpr const char* kFunction = "LOCKSTEP_SPAWN";
constexpr const char* kArguments = "LOCKSTEP_SPAWN_ARGUMENTS";

// The registered functions, filled before main() and only read from then on. Parent and rank, which run the same
// program, identify a function by its name.
std::map<SpawnFunction, std::string>& registry() {
  static std::map<SpawnFunction, std::string> names;
  return names;
}

// Whether main() calls spawn_main(). Otherwise a rank would run all of main() once more, and spawn ranks in turn.
std::atomic<bool> g_main_diverts = false;

std::string name_of(SpawnFunction function) {
  const auto found = registry().find(function);
  if (found == registry().end()) {
    throw ConfigError("spawn: this function is not registered; write LOCKSTEP_SPAWNABLE(function) beside it");
  }
  return found->second;
}

void run_named(const std::string& name, int rank, const SpawnArguments& arguments) {
  for (const auto& [function, known] : registry()) {
    if (known == name) return function(rank, arguments);
  }
  throw ConfigError("spawn: this program has no function ", name, "; was it rebuilt meanwhile?");
}

// This process's own, from its name on.
std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> command;
  for (std::string word; std::getline(file, word, '\0');) command.push_back(word);
  if (command.empty()) throw IoError("/proc/self/cmdline: can't be read; is /proc mounted?");
  return command;
}

launch::SpawnRequest request_of(const std::string& function, const SpawnArguments& arguments) {
  launch::SpawnRequest request{.command = own_command(),
                               .environment = launch::own_environment(),
                               .inherited = {},
                               .program = "/proc/self/exe",
                               .piped = false};
  std::erase_if(request.environment, [](const std::string& each) { return each.rfind(kFunction, 0) == 0; });
  request.environment.push_back(cat(kFunction, '=', function));
  request.environment.push_back(cat(kArguments, '=', launch::pack_arguments(arguments)));
  return request;
}

}  // namespace

Spawned::Spawned(std::unique_ptr<launch::SpawnedRanks> ranks) : ranks_(std::move(ranks)) {}
Spawned::Spawned(Spawned&&) noexcept = default;
Spawned::~Spawned() = default;

std::vector<pid_t> Spawned::pids() const { return ranks_->pids(); }
void Spawned::wait() { ranks_->wait(); }
void Spawned::terminate() { ranks_->terminate(); }

Spawned spawn(SpawnFunction function, const SpawnArguments& arguments, int nproc, bool join) {
  if (!g_main_diverts) {
    throw ConfigError("spawn: main() must be within lockstep::spawn_main(), where a spawned rank turns off");
  }
  if (nproc < 1 || nproc > kMaxLocalRanks) {
    throw ConfigError("spawn: nproc is ", nproc, ", expected a whole number from 1 to ", kMaxLocalRanks);
  }
  Spawned spawned(std::make_unique<launch::SpawnedRanks>(request_of(name_of(function), arguments), nproc));
  if (join) spawned.wait();
  return spawned;
}

int spawn_main(const std::function<int()>& body) {
  g_main_diverts = true;
  const auto name = env(kFunction);
  if (!name) return run_main(body);
  const std::string packed = env(kArguments).value_or("");
  unsetenv(kFunction);  // what this rank starts in turn is not it
  unsetenv(kArguments);
  return run_main([&] {
    run_named(*name, static_cast<int>(env_int("RANK", 0, kMaxLocalRanks - 1).value_or(0)),
              launch::unpack_arguments(packed));
    return 0;
  });
}

namespace launch {

RegisterSpawnable::RegisterSpawnable(const char* name, SpawnFunction function) { registry()[function] = name; }

}  // namespace launch
}  // namespace lockstep
