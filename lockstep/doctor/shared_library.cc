#include "lockstep/doctor/shared_library.h"

#include <dlfcn.h>

namespace lockstep::doctor {

SharedLibrary::SharedLibrary(const std::initializer_list<std::string>& candidates) {
  for (const auto& name : candidates) {
    handle_ = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle_ != nullptr) return;
  }
}

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* SharedLibrary::symbol(const char* name) const { return handle_ == nullptr ? nullptr : dlsym(handle_, name); }

}  // namespace lockstep::doctor
