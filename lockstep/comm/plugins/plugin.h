// Backends that are opened when they are asked for: what they link (MPI, CUDA) is missing on many machines, or costs
// every start of a program too much.
#pragma once

#include <string>
#include <vector>

namespace lockstep::comm {

struct PluginName {
  const char* backend;  // what the user calls it
  const char* library;  // the file
  const char* remedy;   // for messages: how one comes to have it
};

// Where plug-ins are looked for: the folders of LOCKSTEP_PLUGIN_PATH (joined by colons), the program's, ../lib from it.
std::vector<std::string> plugin_folders();

// Opens the library, for the rest of the process's life, and returns its function `symbol`. The plug-in must be of the
// same build: its lockstep_plugin_build() is compared with plugin_build(). Throws ConfigError.
void* plugin_symbol(const PluginName& plugin, const char* symbol);

// Names the release and the interfaces that plug-ins share with it.
const char* plugin_build();

// As plugin_symbol(): plugin_function<decltype(f)>(plugin, "f").
template <typename Function>
Function* plugin_function(const PluginName& plugin, const char* symbol) {
  return reinterpret_cast<Function*>(plugin_symbol(plugin, symbol));
}

}  // namespace lockstep::comm

// Every plug-in defines it, as plugin_build() is defined here.
extern "C" const char* lockstep_plugin_build();
