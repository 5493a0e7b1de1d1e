// A function of a library that was opened by dlopen().
#pragma once

#include <dlfcn.h>

namespace lockstep {

// Points `function` at the library's function of this name, of which it has the type. Returns whether there is one.
template <typename Function>
bool find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace lockstep
