// The outermost frame of a program: it turns an exception into one line of text and an exit code.
#pragma once

#include <functional>

#include "lockstep/base/error.h"

namespace lockstep {

struct BoardRank;

//   int main(int argc, char** argv) {
//     return lockstep::run_main([&] { … return 0; });
//   }
// Returns the result of `body`. If `body` throws, the error's line goes to standard error, or, under our launcher, to
// this rank's entry on the board, from which the launcher reports it. The result is then the error's exit code, or 70
// for an exception that is no Error.
int run_main(const std::function<int()>& body);

// Reports an error as run_main does and ends the process at once with its exit code, without destructors: for a thread
// on which nobody can catch. Any thread.
[[noreturn]] void end_process(const Error& error) noexcept;

// Tells our launcher, if there is one, that this program says how far it is: BoardRank::counts_steps.
void tell_that_steps_are_counted();

// Under another launcher the errors of run_main and end_process go to this entry, too, from which the other ranks of
// the node learn why this one has ended. World sets its own. `entry` lives as long as the process. Any thread.
void publish_errors_on(BoardRank* entry);

}  // namespace lockstep
