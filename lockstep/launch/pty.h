// A pseudo-terminal for a program's standard output: the C library writes each line as it is printed to a terminal, but
// to a pipe only when 4 KiB have come together.
#pragma once

#include <optional>

#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {

struct Pty {
  Descriptor master;  // reads what the program writes, byte for byte; EIO once the program's side is closed everywhere
  Descriptor slave;   // the program's side; raw, and nobody's controlling terminal
};

// Sets the width of the terminal at a descriptor, of either end; false if there is none.
bool set_columns(int descriptor, int columns);

// Opens one that is `columns` wide; 0: 80. Nothing where the system has none to give.
std::optional<Pty> open_pty(int columns);

}  // namespace lockstep::launch
