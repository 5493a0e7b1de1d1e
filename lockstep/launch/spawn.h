// Spawns ranks that run a function of this program, as torch.multiprocessing.spawn does.
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
// A rank is this program started once more by exec, never by fork. The caller may therefore have threads, an
// initialised libtorch or locks held. The rank begins with nothing but its arguments.
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

// The function that a rank runs. An exception ends the rank, and wait() throws it in the spawning process.
using SpawnFunction = void (*)(int rank, const SpawnArguments& arguments);

// Running ranks. The destructor terminates them, with the processes that they have started. One thread.
class Spawned {
 public:
  Spawned(Spawned&&) noexcept;
  Spawned& operator=(Spawned&&) = delete;
  ~Spawned();

  std::vector<pid_t> pids() const;  // by rank

  // Waits until all ranks have ended. When one fails, the others end within a second; one that writes a
  // checkpoint (loop::State::save) first finishes it. Throws Error with the line and
  // exit code of the rank that failed first (128 + N if signal N killed it). Does not throw after terminate().
  void wait();
  // Asks all running ranks to end (SIGTERM), kills them after 0.3 seconds, and waits for their ends.
  void terminate();

 private:
  friend Spawned spawn(SpawnFunction, const SpawnArguments&, int, bool);
  explicit Spawned(std::unique_ptr<launch::SpawnedRanks> ranks);

  std::unique_ptr<launch::SpawnedRanks> ranks_;
};

// Starts `nproc` ranks (at most 64) of `function`, with the environment that init() reads and with this process's
// command line and output. If OMP_NUM_THREADS is not set, each rank gets its share of the cores. The ranks end when
// this process does. With `join`, waits for them as Spawned::wait() does. Any thread may call, also while others spawn.
// Throws ConfigError for a function that is not registered, for arguments of more than 100 kB or with a zero byte, and
// for a main() without spawn_main(); IoError if the machine has no room for the ranks.
Spawned spawn(SpawnFunction function, const SpawnArguments& arguments = {}, int nproc = 1, bool join = true);

// The whole of main(): returns run_main(body) (base/run_main.h). In a spawned rank it runs the rank's function instead
// of `body`.
int spawn_main(const std::function<int()>& body);

namespace launch {
struct RegisterSpawnable {
  RegisterSpawnable(const char* name, SpawnFunction function);
};
}  // namespace launch

// Registers `function` for spawn(). To be used at namespace scope, in the program itself and not in a library.
#define LOCKSTEP_SPAWNABLE(function) LOCKSTEP_SPAWNABLE_AT(function, __FILE__, __LINE__, __COUNTER__)
#define LOCKSTEP_SPAWNABLE_AT(function, file, line, count) LOCKSTEP_SPAWNABLE_AS(function, file, line, count)
#define LOCKSTEP_SPAWNABLE_AS(function, file, line, count) \
  static const ::lockstep::launch::RegisterSpawnable lockstep_spawnable_##count(#function "@" file ":" #line, function)

}  // namespace lockstep
