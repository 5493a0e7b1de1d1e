#include "lockstep/launch/oom.h"

#include <fstream>
#include <optional>
#include <sstream>

#include "lockstep/base/text.h"

namespace lockstep::launch {
namespace {

// Version 2 counts in memory.events, version 1 in memory.oom_control; both as "oom_kill N".
std::optional<uint64_t> kills_in(const std::string& folder) {
  for (const char* name : {"/memory.events", "/memory.oom_control"}) {
    std::ifstream file(folder + name);
    std::string key;
    for (uint64_t count = 0; file >> key >> count;) {
      if (key == "oom_kill") return count;
    }
  }
  return std::nullopt;
}

std::string limit_of(const std::string& folder) {
  for (const char* name : {"/memory.max", "/memory.limit_in_bytes"}) {
    std::ifstream file(folder + name);
    uint64_t limit = 0;
    if (file >> limit && limit < uint64_t{1} << 60) return cat("cgroup limit ", human_bytes(limit));
  }
  return "the machine's memory";
}

// Lines are "0::/path" (version 2) or "4:memory:/path" (version 1).
std::vector<std::string> own_folders() {
  std::vector<std::string> folders;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string number, controllers, path;
    std::getline(in, number, ':');
    std::getline(in, controllers, ':');
    std::getline(in, path);
    if (!controllers.empty() && controllers != "memory") continue;
    const std::string root = controllers.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    folders.push_back(root + path);
    if (path != "/") folders.push_back(root);  // what a container sees of its own
  }
  return folders;
}

}  // namespace

OomWatch::OomWatch() : OomWatch(own_folders()) {}

OomWatch::OomWatch(std::vector<std::string> folders) {
  for (auto& path : folders) {
    const auto kills = kills_in(path);
    if (kills) folders_.push_back({.path = std::move(path), .kills = *kills});
  }
}

std::string OomWatch::verdict() const {
  for (const auto& [path, kills] : folders_) {
    if (kills_in(path).value_or(kills) > kills) return cat("out of memory (", limit_of(path), ")");
  }
  return "";
}

}  // namespace lockstep::launch
