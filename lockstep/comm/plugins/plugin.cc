#include "lockstep/comm/plugins/plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <sstream>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

std::string loader_text() {
  const char* text = dlerror();
  return text == nullptr ? "no reason given" : text;
}

std::string find_library(const PluginName& plugin) {
  std::error_code ignored;
  for (const auto& folder : plugin_folders()) {
    std::string path = folder + '/' + plugin.library;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  throw ConfigError("backend ", plugin.backend, ": this build has no ", plugin.library,
                    " (looked beside the program, in ../lib and in LOCKSTEP_PLUGIN_PATH); ", plugin.remedy);
}

void* symbol_of(void* library, const std::string& path, const char* symbol) {
  void* found = dlsym(library, symbol);
  if (found == nullptr) {
    throw ConfigError(path, ": has no ", symbol, ", so it is no plug-in of this build; build both together");
  }
  return found;
}

}  // namespace

const char* plugin_build() { return LOCKSTEP_PLUGIN_BUILD; }

std::vector<std::string> plugin_folders() {
  std::vector<std::string> folders;
  std::istringstream listed(env("LOCKSTEP_PLUGIN_PATH").value_or(""));
  for (std::string folder; std::getline(listed, folder, ':');) {
    if (!folder.empty()) folders.push_back(folder);
  }
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (!failed) {
    folders.push_back(program.parent_path());
    folders.push_back(program.parent_path().parent_path() / "lib");
  }
  return folders;
}

void* plugin_symbol(const PluginName& plugin, const char* symbol) {
  const std::string path = find_library(plugin);
  // Global: an MPI opens parts of its own that look for its symbols.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    throw ConfigError("backend ", plugin.backend, ": ", path, " can't be opened: ", loader_text(),
                      "; install the library that it names, or leave this backend and its device out");
  }
  const auto build = reinterpret_cast<const char* (*)()>(symbol_of(library, path, "lockstep_plugin_build"));
  if (const std::string theirs = build(); theirs != plugin_build()) {
    throw ConfigError("backend ", plugin.backend, ": ", path, " is of build ", theirs, ", this program of ",
                      plugin_build(), "; build both together");
  }
  return symbol_of(library, path, symbol);
}

}  // namespace lockstep::comm
