// A library that may be there: opened by name when it is asked for.
#pragma once

#include <initializer_list>
#include <string>

namespace lockstep::doctor {

class SharedLibrary {
 public:
  // The first of these (names or paths) that can be opened.
  explicit SharedLibrary(const std::initializer_list<std::string>& candidates);
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;
  ~SharedLibrary();

  explicit operator bool() const { return handle_ != nullptr; }

  // Null if it has no such function. `F`: the function's type, which the caller vouches for.
  template <typename F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;

  void* handle_ = nullptr;
};

}  // namespace lockstep::doctor
