// A library that may be missing: it is opened by name at run time.
#pragma once

#include <initializer_list>
#include <string>

namespace lockstep::doctor {

class SharedLibrary {
 public:
  // Opens the first of these (names or paths) that can be opened.
  explicit SharedLibrary(const std::initializer_list<std::string>& candidates);
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;
  ~SharedLibrary();

  explicit operator bool() const { return handle_ != nullptr; }

  // The function of that name; null if the library has none. The caller vouches for its type `F`.
  template <typename F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;

  void* handle_ = nullptr;
};

}  // namespace lockstep::doctor
