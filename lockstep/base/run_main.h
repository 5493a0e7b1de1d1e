// A program's outermost frame: what it throws becomes one line and an exit code.
#pragma once

#include <functional>

namespace lockstep {

//   int main(int argc, char** argv) {
//     return lockstep::run_main([&] { … return 0; });
//   }
// Returns what `body` returns. If it throws, the error's line goes to standard error, or, under our launcher, to this
// rank's place on the board, from which the launcher reports it; the result is then the error's exit code, 70 for
// exceptions that are not ours.
int run_main(const std::function<int()>& body);

}  // namespace lockstep
