#include "lockstep/base/process_state.h"

#include <fstream>
#include <string>

#include "lockstep/base/text.h"

namespace lockstep {

std::string process_fields(int pid) {
  std::ifstream file(cat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(file, text, '\0');  // empty, and no exception, if the process ends now
  // "812 (a name) T …": the name may hold anything, brackets too.
  const size_t name_end = text.rfind(") ");
  return name_end == std::string::npos ? "" : text.substr(name_end + 2);
}

char process_state(int pid) {
  const std::string fields = process_fields(pid);
  return fields.empty() ? '\0' : fields[0];
}

bool process_stopped(int pid) {
  const char state = process_state(pid);
  return state == 'T' || state == 't';
}

}  // namespace lockstep
