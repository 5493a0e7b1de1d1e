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
    "sys.stdout.write('\\ntorch=' + s.origin + '\\n' if s and s.origin else '')";

// Nothing if it can't be run.
std::optional<launch::Child> start(const std::string& python) {
  try {
    return launch::Child(
        {.command = {python, "-c", kQuestion}, .environment = launch::own_environment(), .inherited = {}});
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

// What stands behind kAnswer on a line of its own; nothing until that line has ended.
std::optional<std::string> answer_in(const std::string& said) {
  constexpr std::string_view kAnswer = "torch=";
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    if (line.starts_with(kAnswer)) return line.substr(kAnswer.size());
  }
  return std::nullopt;
}

// Reads what is there, without waiting, and adds it to `text`. False at the end.
bool read_on(int descriptor, std::string& text) {
  std::array<char, 4096> part{};
  const ssize_t size = read(descriptor, part.data(), part.size());
  if (size > 0) text.append(part.data(), static_cast<size_t>(size));
  return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

// Waits for the answer, or the end of the child's output, "" then. What the child says besides is read and dropped, so
// that it does not wait for us. Nothing if the time is over.
std::optional<std::string> answer_of(launch::Child& child, milliseconds timeout) {
  const auto deadline = steady_clock::now() + timeout;
  std::string said, besides;
  std::array<pollfd, 2> entries = {{{.fd = child.out.get(), .events = POLLIN, .revents = 0},
                                    {.fd = child.err.get(), .events = POLLIN, .revents = 0}}};
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    if (poll(entries.data(), entries.size(), static_cast<int>(left.count())) <= 0) continue;
    if (entries[1].revents != 0 && !read_on(entries[1].fd, besides)) entries[1].fd = -1;
    besides.clear();
    if (entries[0].revents == 0) continue;
    const bool goes_on = read_on(entries[0].fd, said);
    if (auto answer = answer_in(said)) return answer;
    if (!goes_on) return "";
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
  auto child = start(python);
  if (!child) return "";
  const auto answer = answer_of(*child, timeout);
  if (!answer) {
    throw ConfigError(python, ": has not said for ", std::chrono::duration<double>(timeout).count(),
                      " s where its torch is; set LOCKSTEP_TORCH_DIR to the folder torch of PyTorch");
  }
  return fs::path(*answer).parent_path();
}

}  // namespace lockstep::bundle
