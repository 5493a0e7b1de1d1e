#include "lockstep/world/output_lines.h"

#include <cstdio>

#include "lockstep/base/env.h"

namespace lockstep {
namespace {

bool write_lines_if_asked() {
  return env("LOCKSTEP_OUTPUT").value_or("") == "lines" && setvbuf(stdout, nullptr, _IOLBF, 0) == 0;
}

// Before main(), for a buffer can't be changed once something is in it.
const bool g_writes_lines = write_lines_if_asked();

}  // namespace

bool writes_lines() { return g_writes_lines; }

}  // namespace lockstep
