#include "lockstep/dash/serve.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/dash/page.h"

namespace lockstep::dash {
namespace {

constexpr char kListens = '=', kFailed = '!';  // begin what the forked process says

// Nothing of the maker's stays open but its standard streams: a run's lock would be held by this process, too.
[[noreturn]] void be_beside(const std::string& folder, const HttpServer::Options& options, pid_t maker, int said) {
  constexpr int kSaid = STDERR_FILENO + 1;
  prctl(PR_SET_NAME, "lockstep-dash");
  if (nice(10) == -1) errno = 0;                      // a page may wait, a rank not
  std::ofstream("/proc/self/oom_score_adj") << 1000;  // and where memory is short, it goes first
  setpgid(0, 0);                                      // Ctrl-C is the run's
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != maker) _exit(0);
  if (said != kSaid) dup2(said, kSaid);
  close_range(kSaid + 1, ~0U, 0);
  try {
    serve(folder, options, [](const std::string& url) {
      write_all(kSaid, kListens + url);
      close(kSaid);
    });
  } catch (const std::exception& error) {
    write_all(kSaid, kFailed + std::string(error.what()));
  }
  _exit(0);
}

// At most for ten seconds.
std::string read_all(int descriptor) {
  constexpr int kMs = 10'000;
  std::string text(4096, '\0');
  size_t size = 0;
  for (ssize_t count = 1; count != 0 && size < text.size();) {
    pollfd news{descriptor, POLLIN, 0};
    if (poll(&news, 1, kMs) == 0) break;
    count = read(descriptor, text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    size += static_cast<size_t>(count);
  }
  text.resize(size);
  return text;
}

}  // namespace

void serve(const std::string& folder, const HttpServer::Options& options,
           const std::function<void(const std::string& url)>& tell) {
  RunPage page(folder);
  HttpServer server(options, [&page](const std::string& path) -> HttpAnswer {
    if (path == "/") return {.body = page.page(/*live=*/true)};
    if (path == kContentPath) return {.body = page.content()};
    if (path == kScriptPath) return {.type = "text/javascript", .body = script()};
    if (path == "/run.json") return {.type = "application/json", .body = page.facts_json()};
    return {.status = 404, .type = "text/plain", .body = "there is no such page\n"};
  });
  tell(server.url());
  server.run();
}

Beside::Beside(const std::string& folder, const HttpServer::Options& options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw IoError("--dashboard: no descriptors left: ", errno_text(errno));
  const Descriptor reads(ends[0]);
  Descriptor writes(ends[1]);
  const pid_t maker = getpid();
  pid_ = fork();
  if (pid_ < 0) throw IoError("--dashboard: can't start a process: ", errno_text(errno));
  if (pid_ == 0) be_beside(folder, options, maker, writes.get());
  writes = Descriptor();
  const std::string said = read_all(reads.get());
  if (said.starts_with(kListens)) {
    url_ = said.substr(1);
    return;
  }
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  throw ConfigError("--dashboard: ", said.empty() ? "its process ended early" : said.substr(1));
}

// The process is this one's child until it is waited for, so its number is nobody else's, unless somebody else's code
// waits for all children.
Beside::~Beside() {
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, &status, 0);
}

std::shared_ptr<void> open_beside(const std::string& folder, int port, bool quiet) {
  auto beside = std::make_shared<Beside>(folder, HttpServer::Options{.port = port});
  if (!quiet) write_all(STDERR_FILENO, cat("dashboard: ", beside->url(), '\n'));
  return beside;
}

}  // namespace lockstep::dash
