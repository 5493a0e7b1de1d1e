#include "lockstep/world/options/backend_options.h"

#include <vector>

namespace lockstep {

void BackendOptions::declare(config::OptionSet& options) {
  using enum config::Effect;
  std::vector<std::string_view> names = {"auto"};
  names.insert(names.end(), kBackendNames.begin(), kBackendNames.end());
  options.section("Communication");
  options.choice("backend", "how processes talk", &backend, names, kNone);
  options.text("interface", "NAME[,NAME]", "network interfaces between nodes", &interfaces, kNone).of_list();
  options.number("timeout", "SECONDS", "that a process waits for the others", &timeout, 1, 86400, kNone);
}

}  // namespace lockstep
