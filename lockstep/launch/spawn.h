// Functions of this very program as the ranks of a world, as torch.multiprocessing.spawn has them.
//
//   void train(int rank, const std::vector<std::string>& arguments) {
//     const auto world = lockstep::init();
//     …
//   }
//   LOCKSTEP_SPAWNABLE(train);
//
//   int main() {
//     return lockstep::spawn_main([&] {
//       lockstep::spawn(train, {"0.1"}, /*nproc=*/2);
//       return 0;
//     });
//   }
//
// A rank is the program started once more by exec, never a fork: so the caller may have threads, an initialised
// libtorch, locks held. It begins with nothing but its arguments.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {

namespace launch {
class SpawnedRanks;
}

using SpawnArguments = std::vector<std::string>;

// What it throws ends its rank and is told to whoever spawned it.
using SpawnFunction = void (*)(int rank, const SpawnArguments& arguments);

// Ranks that run. One thread. Its end is theirs, with whatever they have started.
class Spawned {
 public:
  Spawned(Spawned&&) noexcept;
  Spawned& operator=(Spawned&&) = delete;
  ~Spawned();

  std::vector<pid_t> pids() const;  // by rank

  // Until all have ended. When one fails the others are gone within a second. Throws Error with the first failing
  // rank's line and exit code (128 + N for signal N); nothing after terminate().
  void wait();
  // Asks all that still run to end (SIGTERM), kills them after 0.3 seconds and waits for that.
  void terminate();

 private:
  friend Spawned spawn(SpawnFunction, const SpawnArguments&, int, bool);
  explicit Spawned(std::unique_ptr<launch::SpawnedRanks> ranks);

  std::unique_ptr<launch::SpawnedRanks> ranks_;
};

// Starts `nproc` ranks (at most 64) of `function`, in an environment that init() reads and with this process's
// arguments, output and, if OMP_NUM_THREADS is not set, its share of the cores. They end when this process does. With
// `join` it waits for them as Spawned::wait() does. Any thread may call, also while others spawn. Throws ConfigError
// for a function that is not registered, arguments of more than 100 kB or with a zero byte, a main() without
// spawn_main(); IoError if the machine has no room for the ranks.
Spawned spawn(SpawnFunction function, const SpawnArguments& arguments = {}, int nproc = 1, bool join = true);

// What main() does and returns: run_main(body) (base/run_main.h), but in a spawned rank its function takes the body's
// place.
int spawn_main(const std::function<int()>& body);

namespace launch {
struct RegisterSpawnable {
  RegisterSpawnable(const char* name, SpawnFunction function);
};
}  // namespace launch

// At namespace scope, in the program itself: makes `function` one that spawn() can start.
#define LOCKSTEP_SPAWNABLE(function) LOCKSTEP_SPAWNABLE_AT(function, __FILE__, __LINE__, __COUNTER__)
#define LOCKSTEP_SPAWNABLE_AT(function, file, line, count) LOCKSTEP_SPAWNABLE_AS(function, file, line, count)
#define LOCKSTEP_SPAWNABLE_AS(function, file, line, count) \
  static const ::lockstep::launch::RegisterSpawnable lockstep_spawnable_##count(#function "@" file ":" #line, function)

}  // namespace lockstep
