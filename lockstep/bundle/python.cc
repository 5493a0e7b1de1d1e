#include "lockstep/bundle/python.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/launch/environment.h"
#include "lockstep/launch/process.h"

namespace lockstep::bundle {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The working directory is an empty entry of sys.path. A package without __init__.py has no origin.
constexpr const char* kQuestion =
    "import sys; sys.path[:] = [p for p in sys.path if p]\n"
    "import importlib.util as u; s = u.find_spec('torch')\n"
    "sys.stdout.write('torch=' + s.origin + '\\n' if s and s.origin else '')";

// Nothing if it can't be run.
std::optional<launch::Child> start(const std::string& python) {
  try {
    return launch::Child(
        {.command = {python, "-c", kQuestion}, .environment = launch::own_environment(), .inherited = {}});
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

// Reads `descriptor`, which doesn't block, to its end. False if that takes longer than `timeout`.
bool read_all(int descriptor, milliseconds timeout, std::string& text) {
  const auto deadline = steady_clock::now() + timeout;
  while (true) {
    std::array<char, 4096> part{};
    const ssize_t size = read(descriptor, part.data(), part.size());
    if (size > 0) text.append(part.data(), static_cast<size_t>(size));
    if (size == 0) return true;
    if (size > 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return true;
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    pollfd wait{.fd = descriptor, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count())) == 0) return false;
  }
}

}  // namespace

std::vector<std::string> pythons_of_path() {
  std::vector<std::string> out;
  std::set<fs::path> seen;
  std::istringstream path(env("PATH").value_or("/usr/local/bin:/usr/bin:/bin"));
  for (std::string folder; std::getline(path, folder, ':');) {
    std::error_code failed;
    const fs::path real = fs::canonical(folder.empty() ? "." : folder, failed);  // /bin is often /usr/bin
    if (failed || !seen.insert(real).second) continue;
    const std::string python = fs::path(folder.empty() ? "." : folder) / "python3";
    if (access(python.c_str(), X_OK) == 0 && !fs::is_directory(python, failed)) out.push_back(python);
  }
  return out;
}

std::string torch_of(const std::string& python, milliseconds timeout) {
  const auto child = start(python);
  if (!child) return "";
  std::string said;
  if (!read_all(child->out.get(), timeout, said)) {
    throw ConfigError(python, ": has not said for ", std::chrono::duration<double>(timeout).count(),
                      " s where its torch is; set LOCKSTEP_TORCH_DIR to the folder torch of PyTorch");
  }
  constexpr std::string_view kAnswer = "torch=";
  const size_t from = said.rfind(kAnswer), end = said.find('\n', from);
  if (from == std::string::npos || end == std::string::npos) return "";
  return fs::path(said.substr(from + kAnswer.size(), end - from - kAnswer.size())).parent_path();
}

}  // namespace lockstep::bundle
