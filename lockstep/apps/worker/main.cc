// lockstep-worker: one rank. The front starts it, or torchrun, mpirun, srun.
#include <unistd.h>

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "lockstep/base/board.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/shared_memory.h"

namespace lockstep::worker {
namespace {

// This rank's place on the board of our launcher, which is told there what ended the rank; none under another launcher.
class OwnPlace {
 public:
  OwnPlace() {
    const auto memory = env("LOCKSTEP_NODE_MEMORY");
    const auto rank = env_int("LOCAL_RANK", 0, kMaxLocalRanks - 1);
    if (!memory || !rank) return;
    board_ = Mapping(std::stoi(*memory));
    self_ = &Board::attach(board_.data())->ranks[static_cast<size_t>(*rank)];
    self_->pid.store(getpid());
  }

  BoardRank* self() const { return self_; }

 private:
  Mapping board_;
  BoardRank* self_ = nullptr;
};

int dispatch(const config::Command& command) {
  return std::visit(
      [](const auto& options) -> int {
        if constexpr (requires { run(options); }) {
          return run(options);
        } else {
          throw ConfigError("lockstep-worker trains, evaluates, measures and inspects; all else is lockstep's");
        }
      },
      command);
}

int main_of(const std::vector<std::string>& arguments) {
  std::optional<OwnPlace> place;
  const auto fail = [&place](int code, const std::string& line) {
    if (place && place->self() != nullptr) {
      place->self()->fail(code, line);
    } else {
      write_all(STDERR_FILENO, "error: " + line + '\n');
    }
    return code;
  };
  try {
    place.emplace();
    return dispatch(config::parse_command(arguments, usable_cores()));
  } catch (const Error& error) {
    return fail(error.exit_code(), error.what());
  } catch (const std::exception& error) {
    // libtorch's messages go on with a stack trace; the first line says what happened.
    const std::string text = error.what();
    return fail(BugError::kExitCode, text.substr(0, text.find('\n')));
  }
}

}  // namespace

void print(const std::string& text) {
  if (!write_all(STDOUT_FILENO, text)) throw IoError("standard output: can't be written");
}

}  // namespace lockstep::worker

int main(int argc, char** argv) {
  // Without the teardown of libtorch, which frees for a tenth of a second what the kernel frees at once.
  _exit(lockstep::worker::main_of({argv + 1, argv + argc}));
}
