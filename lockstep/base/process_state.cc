#include "lockstep/base/process_state.h"

#include <fstream>
#include <iterator>
#include <string>

#include "lockstep/base/text.h"

namespace lockstep {

char process_state(int pid) {
  std::ifstream file(cat("/proc/", pid, "/stat"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // "812 (a name) T …": the name may hold anything, brackets too.
  const size_t name_end = text.rfind(") ");
  return name_end == std::string::npos || name_end + 2 >= text.size() ? '\0' : text[name_end + 2];
}

bool process_stopped(int pid) {
  const char state = process_state(pid);
  return state == 'T' || state == 't';
}

}  // namespace lockstep
