#include "program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"

extern char** environ;

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr auto kLook = std::chrono::milliseconds(5);

// "LOCKSTEP_E2E_MARK=<pid>.<n>": processes inherit it, so that even orphans are found.
std::string new_mark() {
  static int count = 0;
  return cat("LOCKSTEP_E2E_MARK=", getpid(), '.', ++count);
}

// Of /proc/<pid>/stat: the process's name in parentheses, then its state.
bool is_dead(const std::string& stat) {
  const size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= stat.size() || stat[name_end + 2] == 'Z' ||
         stat[name_end + 2] == 'X';
}

// Splits what NULs end.
bool holds_entry(const std::string& entries, const std::string& wanted) {
  const std::string all = '\0' + entries;
  return all.find('\0' + wanted + '\0') != std::string::npos;
}

std::vector<pid_t> numbered_processes() {
  std::vector<pid_t> out;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (read.ec == std::errc() && read.ptr == name.data() + name.size()) out.push_back(pid);
  }
  return out;
}

pid_t spawn(const Program::Options& options, std::string mark, const std::string& output) {
  std::vector<std::string> words = options.command;
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  environment.push_back(mark.data());
  environment.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, (output + "/out").c_str(), kFlags, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (output + "/err").c_str(), kFlags, 0600);
  posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());
  // A shell's background job ignores them, and would pass that on.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t usual;
  sigemptyset(&usual);
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP}) sigaddset(&usual, signal);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, arguments[0], &actions, &attributes, arguments.data(), environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw IoError(options.command[0], ": can't be started: ", errno_text(error));
  return pid;
}

}  // namespace

Program::Program(const Options& options) : mark_(new_mark()), began_(steady_clock::now()) {
  pid_ = spawn(options, mark_, output_.path());
}

Program::~Program() {
  for (const pid_t pid : processes()) kill(pid, SIGKILL);
  if (!ended_) reap(/*block=*/true);
}

bool Program::reap(bool block) {
  int status = 0;
  rusage usage{};
  if (ended_ || wait4(pid_, &status, block ? 0 : WNOHANG, &usage) != pid_) return ended_;
  ended_ = true;
  result_.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  result_.seconds = std::chrono::duration<double>(steady_clock::now() - began_).count();
  result_.peak_mb = static_cast<double>(usage.ru_maxrss) / 1024;
  result_.out = read_file(output_ / "out");
  result_.err = read_file(output_ / "err");
  return true;
}

Result Program::wait(std::chrono::seconds timeout) {
  if (!eventually([&] { return reap(/*block=*/false); }, timeout)) {
    kill(pid_, SIGKILL);
    reap(/*block=*/true);
    ADD_FAILURE() << "the program had not ended after " << timeout.count() << " s; it said: " << result_.err;
  }
  return result_;
}

void Program::signal(int number) const {
  if (!ended_) kill(pid_, number);
}

std::string Program::out() const { return read_file(output_ / "out"); }
std::string Program::err() const { return read_file(output_ / "err"); }

std::vector<pid_t> Program::processes(std::string_view name) const {
  std::vector<pid_t> out;
  for (const pid_t pid : numbered_processes()) {
    const std::string folder = cat("/proc/", pid);
    if (!holds_entry(read_file(folder + "/environ"), mark_) || is_dead(read_file(folder + "/stat"))) continue;
    if (name.empty() || read_file(folder + "/comm") == cat(name, '\n')) out.push_back(pid);
  }
  return out;
}

bool Program::all_gone(std::chrono::milliseconds timeout) const {
  return eventually([&] { return processes().empty(); }, timeout);
}

std::string bin_folder() {
  return env("LOCKSTEP_BIN").value_or(fs::read_symlink("/proc/self/exe").parent_path().string());
}

Program::Options lockstep_command(const std::vector<std::string>& arguments, const std::string& folder) {
  Program::Options options{.command = {bin_folder() + "/lockstep"}, .folder = folder};
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  return options;
}

Result lockstep(const std::vector<std::string>& arguments, const std::string& folder, std::chrono::seconds timeout) {
  return Program(lockstep_command(arguments, folder)).wait(timeout);
}

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds timeout) {
  const auto deadline = steady_clock::now() + timeout;
  while (!condition()) {
    if (steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content << std::flush;
  if (!file) throw IoError(path, ": can't be written");
}

}  // namespace lockstep::e2e
