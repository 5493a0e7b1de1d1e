// lockstep: the command line and the launcher. Everything that computes happens in lockstep-worker.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <new>

#include "commands.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/shown.h"

namespace {

// Pipes and shared memory must not take the numbers of closed standard streams.
void open_standard_streams() {
  int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd >= 0) close(fd);
}

int fail(int code, const char* line) {
  lockstep::write_all(STDERR_FILENO, lockstep::cat("error: ", lockstep::shown(line), '\n'));
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  unsetenv(lockstep::kNodeCores);  // of a launcher around this one: its rank's CPUs are all that there are here
  signal(SIGXFSZ, SIG_IGN);        // here and in the workers: a file-size limit is then an error that can be told
  try {
    return lockstep::front::run({argv + 1, argv + argc});
  } catch (const lockstep::Error& error) {
    return fail(error.exit_code(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(lockstep::IoError::kExitCode, "out of memory in the launcher; close other programs");
  } catch (const std::exception& error) {
    return fail(lockstep::BugError::kExitCode, error.what());
  }
}
