#include "lockstep/bundle/runtime.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <charconv>

#include "lockstep/base/file_content.h"

namespace lockstep::bundle {
namespace {

// The path of a library as the loader finds it, "" if it finds none.
std::string found_by_loader(const char* name) {
  void* const handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return "";
  link_map* map = nullptr;
  const std::string path = dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 ? map->l_name : "";
  dlclose(handle);
  return path;
}

}  // namespace

int newest_glibcxx(const std::string& file) {
  constexpr std::string_view kVersion = "GLIBCXX_3.4.";
  const std::string bytes = file_content(file).value_or("");
  int newest = -1;
  for (size_t at = bytes.find(kVersion); at != std::string::npos; at = bytes.find(kVersion, at + 1)) {
    int number = -1;
    const char* const digits = bytes.data() + at + kVersion.size();
    std::from_chars(digits, bytes.data() + bytes.size(), number);
    newest = std::max(newest, number);
  }
  return newest;
}

std::string runtime_folder(const std::string& root) {
  const std::string own = root + "/lib/gcc";
  const int theirs = newest_glibcxx(found_by_loader("libstdc++.so.6"));
  const bool complete = theirs >= 0 && !found_by_loader("libgcc_s.so.1").empty();
  return complete && theirs >= newest_glibcxx(own + "/libstdc++.so.6") ? "" : own;
}

}  // namespace lockstep::bundle
