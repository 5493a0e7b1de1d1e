#include "lockstep/base/process_state.h"

#include <fstream>
#include <string>

#include "lockstep/base/text.h"

namespace lockstep {

char process_state(int pid) {
  std::ifstream file(cat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(file, text, '\0');  // empty, and no exception, if the process ends now
  // "812 (a name) T …": the name may hold anything, brackets too.
  const size_t name_end = text.rfind(") ");
  return name_end == std::string::npos || name_end + 2 >= text.size() ? '\0' : text[name_end + 2];
}

bool process_stopped(int pid) {
  const char state = process_state(pid);
  return state == 'T' || state == 't';
}

}  // namespace lockstep
