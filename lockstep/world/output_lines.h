// Standard output that is written line by line, for a launcher that reads it through a pipe.
#pragma once

namespace lockstep {

// Whether LOCKSTEP_OUTPUT asked, when the program was loaded, that each line of its standard output be written as it is
// printed. The C library otherwise keeps lines for a pipe until 4 KiB have come together, and a killed program loses
// them. C++ streams go through the C library too, unless the program calls sync_with_stdio(false).
bool writes_lines();

}  // namespace lockstep
