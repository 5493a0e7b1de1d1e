#include "lockstep/launch/spawn_arguments.h"

#include <charconv>

#include "lockstep/base/error.h"

namespace lockstep::launch {
namespace {

constexpr size_t kMostBytes = 100'000;  // the kernel's limit for a variable is 128 KiB

}  // namespace

std::string pack_arguments(const std::vector<std::string>& arguments) {
  std::string packed;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].find('\0') != std::string::npos) {
      throw ConfigError("spawn: argument ", i, " has a zero byte; pass text, or the path of a file");
    }
    packed += cat(arguments[i].size(), ':', arguments[i]);
  }
  if (packed.size() > kMostBytes) {
    throw ConfigError("spawn: ", packed.size(), " bytes of arguments, not at most ", kMostBytes,
                      "; pass the path of a file");
  }
  return packed;
}

std::vector<std::string> unpack_arguments(std::string_view packed) {
  std::vector<std::string> arguments;
  while (!packed.empty()) {
    size_t size = 0;
    const auto [end, error] = std::from_chars(packed.data(), packed.data() + packed.size(), size);
    const size_t start = static_cast<size_t>(end - packed.data()) + 1;
    if (error != std::errc() || start > packed.size() || *end != ':' || size > packed.size() - start) {
      throw ConfigError("spawn: the arguments in the environment are not what spawn() wrote");
    }
    arguments.emplace_back(packed.substr(start, size));
    packed.remove_prefix(start + size);
  }
  return arguments;
}

}  // namespace lockstep::launch
