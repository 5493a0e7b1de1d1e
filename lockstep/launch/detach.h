// A command that leaves its terminal: a background process with a session of its own does the work, and the process
// that was started, the foreground, ends once that has begun.
#pragma once

#include <functional>
#include <string>

#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {

// The background's end of the way to the foreground. One thread.
class Background {
 public:
  explicit Background(Descriptor foreground) : foreground_(std::move(foreground)) {}

  // Standard output and standard error go to the end of this file from now on, which is made, and standard input is
  // empty. The foreground shows what is written there until begun(), but not `first`, with which it begins. Throws
  // IoError.
  void write_to(const std::string& log, const std::string& first = "");
  // Lets the foreground end, which prints `text` to its standard output. Later calls do nothing.
  void begun(const std::string& text);

 private:
  Descriptor foreground_;
};

// Forks. In the background process it returns what `work` returns, or throws what it throws: the caller ends there as
// it does without this. In the foreground it returns 0 when the work has begun, or, if the background process ends
// before, that one's exit code, 128+N if signal N killed it. Until then SIGINT and SIGTERM are passed on as SIGTERM,
// and what `work` writes before Background::write_to() comes on the terminal by itself. SIGHUP is ignored in the
// background. To be called on the main thread of a process without others. Throws IoError, BugError if there are other
// threads.
int in_background(const std::function<int(Background&)>& work);

// The lines that the foreground ends with: where the run is, and the commands for it.
std::string background_text(const std::string& folder, int pid);

}  // namespace lockstep::launch
