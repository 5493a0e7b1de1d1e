#include "lockstep/launch/etcd/own_etcd.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/file_content.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/base/shown.h"
#include "lockstep/base/text.h"
#include "lockstep/launch/etcd/epoch.h"
#include "lockstep/launch/etcd/etcd_client.h"
#include "lockstep/rendezvous/place/tcp_sockets.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;

constexpr int kNoProgram = 127;
constexpr int kNapMs = 100;
constexpr double kPatience = 30;  // seconds for an answer
constexpr const char *kNewFolder = "lockstep-new-etcd-", *kFolder = "lockstep-etcd-";

std::string temporary_folder() { return env("TMPDIR").value_or("/tmp"); }

// A folder's lock, which ends with the process that made it; none if that lives.
Descriptor lock_of(const std::string& folder, int flags = 0) {
  Descriptor lock(open((folder + "/lock").c_str(), O_RDWR | O_CLOEXEC | flags, 0600));
  if (lock && flock(lock.get(), LOCK_EX | LOCK_NB) != 0) lock = {};
  return lock;
}

// Those that launchers have left which were killed: a hundred megabytes each.
void remove_left_folders() {
  std::error_code ignored;
  for (fs::directory_iterator at(temporary_folder(), ignored), end; !ignored && at != end; at.increment(ignored)) {
    const std::string folder = at->path();
    if (!at->path().filename().string().starts_with(kFolder)) continue;
    if (const Descriptor lock = lock_of(folder)) fs::remove_all(folder, ignored);
  }
}

void die_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // which has ended meanwhile
}

// Runs the program to its end. Returns its wait status.
int run(std::vector<std::string> words, const std::string& log_path) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const Descriptor log(open(log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    die_with(parent);
    dup2(log.get(), STDOUT_FILENO);
    dup2(log.get(), STDERR_FILENO);
    execvp(argv[0], argv.data());
    _exit(kNoProgram);
  }
  int status = 0;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

std::unique_ptr<OwnEtcd> OwnEtcd::start(const std::string& host, int port, const std::function<bool()>& stop_asked) {
  constexpr int kStarts = 3;  // with other ports for itself, which somebody may take before etcd does
  for (int i = 0; i < kStarts; ++i) {
    rendezvous::TcpSocket place = rendezvous::listen_at(host, port);
    if (place.error == EADDRINUSE) return nullptr;
    remove_left_folders();
    if (!place.descriptor) throw CommError("--rdzv-endpoint ", host, ':', port, ": can't listen there: ", place.text);
    std::unique_ptr<OwnEtcd> own(new OwnEtcd);
    own->endpoint_ = etcd_url("http", host, port);
    own->listens_ = etcd_url("http", rendezvous::address_of(place.descriptor), port);
    own->port_ = port;
    place.descriptor = {};  // etcd takes it
    own->make_folder();
    own->begin();
    const Start result = own->await_answer(stop_asked);
    if (result == Start::kAnswers) return own;
    if (result != Start::kPeerPortTaken) return nullptr;
  }
  throw CommError("the etcd that this node starts at ", etcd_url("http", host, port), " finds no port for itself");
}

void OwnEtcd::make_folder() {
  const std::string mark = "XXXXXX";
  folder_ = cat(temporary_folder(), '/', kNewFolder, mark);
  if (mkdtemp(folder_.data()) == nullptr) {
    throw IoError(std::exchange(folder_, ""), ": can't make a folder for etcd: ", errno_text(errno));
  }
  lock_ = lock_of(folder_, O_CREAT);
  // Others know it by its name only once it is locked.
  const std::string name = cat(temporary_folder(), '/', kFolder, folder_.substr(folder_.size() - mark.size()));
  if (rename(folder_.c_str(), name.c_str()) == 0) folder_ = name;
}

void OwnEtcd::begin() {
  const pid_t launcher = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    die_with(launcher);
    setpgid(0, 0);  // Ctrl-C is for the launcher, which needs the server until all have left
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP}) ::signal(signal, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    _exit(keep_running());
  }
  if (pid_ < 0) throw IoError("can't start etcd: ", errno_text(errno));
}

// In a process of its own. Returns the exit code of a server that does not start.
int OwnEtcd::keep_running() const {
  constexpr double kShort = 1;  // seconds
  constexpr int kShortRuns = 10;
  for (int short_runs = 0; short_runs < kShortRuns;) {
    const std::string peer = etcd_url("http", "127.0.0.1", free_port());
    const Stopwatch watch;
    const int status = run(
        {"etcd", "--name=lockstep", cat("--data-dir=", folder_, "/data"), "--listen-client-urls=" + listens_,
         "--advertise-client-urls=" + endpoint_, "--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
         "--initial-cluster=lockstep=" + peer, "--unsafe-no-fsync"},  // it ends with this process
        folder_ + "/log");
    if (!fs::exists(answered())) return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    const bool is_short = watch.seconds() < kShort;
    short_runs = is_short ? short_runs + 1 : 0;
    if (is_short) poll(nullptr, 0, 3 * kNapMs);
  }
  return 1;
}

bool OwnEtcd::ended() {
  int status = 0;
  if (pid_ > 0 && waitpid(pid_, &status, WNOHANG) != pid_) return false;
  const bool is_none = pid_ > 0 && WIFEXITED(status) && WEXITSTATUS(status) == kNoProgram;
  pid_ = -1;
  if (!is_none) return true;
  throw ConfigError(
      "--rdzv-backend c10d: nodes that start anew together meet at an etcd, which this node would start, and there "
      "is no program etcd in PATH; install it here (Debian: etcd-server), or name one that runs: --rdzv-backend "
      "etcd --rdzv-endpoint HOST:2379");
}

OwnEtcd::Start OwnEtcd::await_answer(const std::function<bool()>& stop_asked) {
  EtcdClient client({.endpoints = {endpoint_}});
  for (const Stopwatch watch; watch.seconds() < kPatience; poll(nullptr, 0, kNapMs)) {
    if (stop_asked()) return Start::kStopped;
    if (ended()) {
      const std::string words = last_words();
      if (words.find("address already in use") == std::string::npos) break;
      return words.find(cat(':', port_, ": bind")) == std::string::npos ? Start::kPeerPortTaken : Start::kPortTaken;
    }
    // Before its own has the port, another launcher's may answer there. Words of a version that says it otherwise are
    // not waited for.
    constexpr double kOtherwise = 5;  // seconds
    const std::string said = file_content(folder_ + "/log").value_or("");
    if (said.find("ready to serve client") == std::string::npos && watch.seconds() < kOtherwise) continue;
    try {
      client.list("/lockstep/");
      std::ofstream(answered()) << "for the process that starts it anew\n";
      return Start::kAnswers;
    } catch (const CommError&) {  // not yet
    }
  }
  throw CommError("the etcd that this node starts at ", endpoint_, " does not answer: ", last_words());
}

// The line of its log that says why it has ended.
std::string OwnEtcd::last_words() const {
  std::istringstream log(file_content(folder_ + "/log").value_or(""));
  std::string last = "no word";
  for (std::string line; std::getline(log, line);) {
    if (!line.empty()) last = line;
  }
  constexpr size_t kMost = 400;
  return shown(last.substr(0, kMost));
}

OwnEtcd::~OwnEtcd() {
  if (pid_ > 0) {
    int adopted_before = 0;  // the server becomes this process's child, so that nothing is left of it
    prctl(PR_GET_CHILD_SUBREAPER, &adopted_before);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);  // which has perhaps no group yet
    waitpid(pid_, nullptr, 0);
    while (waitpid(-pid_, nullptr, 0) > 0) {
    }
    prctl(PR_SET_CHILD_SUBREAPER, adopted_before);
  }
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

void OwnEtcd::serve_until_left(int last, const std::function<bool()>& stop_asked,
                               const std::function<void(const std::string&)>& say) const {
  constexpr double kTellAfter = 3, kTellEvery = 30;  // seconds
  EtcdClient client({.endpoints = {endpoint_}});
  double tell_at = kTellAfter;
  Stopwatch unheard;
  for (const Stopwatch watch; !stop_asked() && unheard.seconds() < kPatience; poll(nullptr, 0, kNapMs)) {
    try {
      const std::vector<EtcdValue> all = client.list("/lockstep/");
      const auto is_waited_for = [&](const EtcdValue& each) {
        if (each.key.find("/nodes/") == std::string::npos) return false;
        const auto node = Node::decode(each.value);
        return !node || last == 0 || node->before < last;
      };
      const auto left = std::ranges::count_if(all, is_waited_for);
      if (left == 0) return;
      unheard.restart();
      if (watch.seconds() < tell_at) continue;
      tell_at = watch.seconds() + kTellEvery;
      say(cat("waiting: ", left, left == 1 ? " node is" : " nodes are", " still at the etcd of this one (", endpoint_,
              "); Ctrl-C ends it"));
    } catch (const CommError&) {  // once more
    }
  }
}

}  // namespace lockstep::launch
