#include "lockstep/launch/etcd/own_etcd.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/file_content.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/base/shown.h"
#include "lockstep/base/text.h"
#include "lockstep/launch/etcd/etcd_client.h"
#include "lockstep/rendezvous/place/tcp_sockets.h"

namespace lockstep::launch {
namespace {

constexpr int kNoProgram = 127;
constexpr int kNapMs = 100;

// The address that the socket listens at; "" if there is none.
std::string address_of(const Descriptor& listener) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  std::array<char, NI_MAXHOST> text{};
  const auto* const address = reinterpret_cast<const sockaddr*>(&own);
  if (getsockname(listener.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) return "";
  if (getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text.data();
}

std::string url_of(const std::string& host, int port) {
  return cat("http://", host.find(':') == std::string::npos ? host : cat('[', host, ']'), ':', port);
}

// Words of this process are allocated before it is called.
[[noreturn]] void become(const std::vector<char*>& argv, int log) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);  // Ctrl-C is for the launcher, which needs the server until all have left
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execvp(argv[0], argv.data());
  _exit(kNoProgram);
}

}  // namespace

std::unique_ptr<OwnEtcd> OwnEtcd::start(const std::string& host, int port) {
  rendezvous::TcpSocket place = rendezvous::listen_at(host, port);
  if (place.error == EADDRINUSE) return nullptr;
  if (!place.descriptor) throw CommError("--rdzv-endpoint ", host, ':', port, ": can't listen there: ", place.text);
  const std::string address = address_of(place.descriptor);
  place.descriptor = {};  // etcd takes it
  std::unique_ptr<OwnEtcd> own(new OwnEtcd);
  own->endpoint_ = url_of(host, port);
  own->begin(address, port);
  if (own->await_answer()) return own;
  const std::string words = own->last_words();
  if (words.find("address already in use") != std::string::npos) return nullptr;  // another launcher was faster
  throw CommError("the etcd that this node starts at ", own->endpoint_, " does not answer: ", words);
}

void OwnEtcd::begin(const std::string& address, int port) {
  folder_ = env("TMPDIR").value_or("/tmp") + "/lockstep-etcd-XXXXXX";
  if (mkdtemp(folder_.data()) == nullptr) {
    throw IoError(std::exchange(folder_, ""), ": can't make a folder for etcd: ", errno_text(errno));
  }
  const std::string peer = url_of("127.0.0.1", free_port());
  std::vector<std::string> words = {"etcd",
                                    "--name=lockstep",
                                    cat("--data-dir=", folder_, "/data"),
                                    cat("--listen-client-urls=", url_of(address, port)),
                                    cat("--advertise-client-urls=", endpoint_),
                                    "--listen-peer-urls=" + peer,
                                    "--initial-advertise-peer-urls=" + peer,
                                    "--initial-cluster=lockstep=" + peer,
                                    "--unsafe-no-fsync"};  // what it holds ends with this process
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const Descriptor log(open((folder_ + "/log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  pid_ = fork();
  if (pid_ == 0) become(argv, log.get());
  if (pid_ < 0) throw IoError("can't start etcd: ", errno_text(errno));
}

bool OwnEtcd::await_answer() {
  constexpr double kPatience = 30;  // seconds
  for (const Stopwatch watch; watch.seconds() < kPatience;) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      if (!WIFEXITED(status) || WEXITSTATUS(status) != kNoProgram) return false;
      throw ConfigError(
          "--rdzv-backend c10d: nodes that start anew together meet at an etcd, which this node would start, and there "
          "is no program etcd in PATH; install it here (Debian: etcd-server), or name one that runs: --rdzv-backend "
          "etcd --rdzv-endpoint HOST:2379");
    }
    try {
      EtcdClient({.endpoints = {endpoint_}}).list("/lockstep/");
      return true;
    } catch (const CommError&) {
      poll(nullptr, 0, kNapMs);
    }
  }
  return false;
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
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

void OwnEtcd::serve_until_left(const std::string& run, const std::function<bool()>& stop_asked,
                               const std::function<void(const std::string&)>& say) const {
  constexpr double kTellAfter = 3, kTellEvery = 30;  // seconds
  EtcdClient client({.endpoints = {endpoint_}});
  double tell_at = kTellAfter;
  try {
    for (const Stopwatch watch; !stop_asked(); poll(nullptr, 0, kNapMs)) {
      const size_t left = client.list(cat("/lockstep/", run, "/nodes/")).size();
      if (left == 0) return;
      if (watch.seconds() < tell_at) continue;
      tell_at = watch.seconds() + kTellEvery;
      say(cat("waiting: ", left, left == 1 ? " node is" : " nodes are", " still at the etcd of this one (", endpoint_,
              "); Ctrl-C ends it"));
    }
  } catch (const CommError& error) {
    say(cat("warning: ", error.what()));
  }
}

}  // namespace lockstep::launch
