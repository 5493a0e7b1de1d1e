// Plug-ins: backends in libraries that are opened only when they are asked for. The libraries that they link (MPI,
// CUDA) are missing on many machines, or would slow down every start of a program.
#pragma once

#include <string>
#include <vector>

namespace lockstep::comm {

struct PluginName {
  const char* backend;  // the user's name for it
  const char* library;  // the file's name
  const char* remedy;   // for messages: how to get it
};

// The folders that are searched for plug-ins: those of LOCKSTEP_PLUGIN_PATH (separated by colons), the program's own
// and
// ../lib beside it.
std::vector<std::string> plugin_folders();

// Opens the library for the rest of the process and returns its function `symbol`. Throws ConfigError if there is no
// such library or function, or if it is of another build: its lockstep_plugin_build() differs from plugin_build().
void* plugin_symbol(const PluginName& plugin, const char* symbol);

// Identifies the release and the interfaces that plug-ins share with it.
const char* plugin_build();

// plugin_symbol() with the function's type: plugin_function<decltype(f)>(plugin, "f").
template <typename Function>
Function* plugin_function(const PluginName& plugin, const char* symbol) {
  return reinterpret_cast<Function*>(plugin_symbol(plugin, symbol));
}

}  // namespace lockstep::comm

// Every plug-in defines this function, with the value of plugin_build() at its own build.
extern "C" const char* lockstep_plugin_build();
