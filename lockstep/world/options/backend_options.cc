#include "lockstep/world/options/backend_options.h"

namespace lockstep {

void BackendOptions::declare(config::OptionSet& options, const std::vector<config::Refused>& refused) {
  using enum config::Effect;
  std::vector<std::string_view> names = {"auto"};
  names.insert(names.end(), kBackendNames.begin(), kBackendNames.end());
  options.section("Communication");
  options.choice("backend", "how processes talk", &backend, names, kNone, refused);
  options.text("interface", "NAME[,NAME]", "network interfaces between nodes", &interfaces, kNone).of_list();
  options.number("timeout", "SECONDS", "that a process waits for the others", &timeout, 1, 86400, kNone);
}

}  // namespace lockstep
