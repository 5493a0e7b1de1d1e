// Ranks of two nodes (two processes of this machine, which GROUP_RANK tells apart) that are told something wrong, or
// meet at a port to which others send rubbish: one line each, in time, or the run goes on as if nothing were.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "lockstep/base/free_ports.h"
#include "runs.h"
#include "support/http.h"
#include "support/ports.h"

namespace lockstep::e2e {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using testing_support::ListeningPort;

constexpr int kTimeout = 3, kGrace = 5;  // seconds

struct Member {
  int rank = 0, size = 2, timeout = kTimeout, steps = 3;
  Words environment = {}, words = {};
};

// Ranks that meet at host:port, each alone on its node.
struct Rendezvous {
  explicit Rendezvous(int port_number, std::string host_name = "127.0.0.1")
      : host(std::move(host_name)), port(port_number) {}

  std::unique_ptr<Program> start(const Member& member) const {
    const auto number = [](const char* name, int value) { return cat(name, '=', value); };
    const Words command = Words{"/usr/bin/env",        number("RANK", member.rank), number("WORLD_SIZE", member.size),
                                "LOCAL_RANK=0",        "LOCAL_WORLD_SIZE=1",        number("GROUP_RANK", member.rank),
                                "MASTER_ADDR=" + host, number("MASTER_PORT", port)} +
                          member.environment + Words{bin_folder() + "/lockstep-worker"} +
                          train_words({"--steps", std::to_string(member.steps), "--out", dir / "run", "--timeout",
                                       std::to_string(member.timeout)}) +
                          member.words;
    return std::make_unique<Program>(Program::Options{.command = command});
  }

  TempDir dir;
  std::string host;
  int port;
};

void expect_line(Program& rank, int exit_code, const std::string& what) {
  const Result result = rank.wait(seconds(kTimeout + kGrace + 10));
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr(what));
  EXPECT_LT(result.seconds, kTimeout + kGrace) << result.err;
}

void expect_success(Program& rank) {
  const Result result = rank.wait(seconds(60));
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(HostileNetwork, APortInUseIsOneLineOnAllRanks) {
  const ListeningPort taken;
  const Rendezvous rendezvous(taken.port());
  const auto server = rendezvous.start({.rank = 0}), client = rendezvous.start({.rank = 1});
  expect_line(*server, CommError::kExitCode, cat("can't listen on port ", taken.port()));
  expect_line(*client, CommError::kExitCode, "rank 1: nothing at tcp://");
}

TEST(HostileNetwork, AnUnreachableRendezvousIsOneLine) {
  const Rendezvous rendezvous(29500, "192.0.2.1");  // TEST-NET-1: nobody's
  const auto server = rendezvous.start({.rank = 0}), client = rendezvous.start({.rank = 1});
  expect_line(*server, CommError::kExitCode, "192.0.2.1");
  expect_line(*client, CommError::kExitCode, "192.0.2.1");
}

TEST(HostileNetwork, AnUnknownInterfaceIsOneLineHoweverItIsNamed) {
  const Member by_option{.words = {"--interface", "ib7"}}, by_variable{.environment = {"GLOO_SOCKET_IFNAME=ib7"}};
  for (Member member : {by_option, by_variable}) {
    const Rendezvous rendezvous(free_port());
    const auto server = rendezvous.start(member);
    member.rank = 1;
    const auto client = rendezvous.start(member);
    expect_line(*server, ConfigError::kExitCode, "ib7: this machine has no such interface");
    expect_line(*client, ConfigError::kExitCode, "ib7: this machine has no such interface");
  }
}

TEST(HostileNetwork, GloosVariableChoosesTheInterface) {
  const Rendezvous rendezvous(free_port());
  const Words environment = {"GLOO_SOCKET_IFNAME=lo", "LOCKSTEP_DEBUG=INFO"};
  const auto server = rendezvous.start({.rank = 0, .environment = environment});
  const auto client = rendezvous.start({.rank = 1, .environment = environment});
  expect_success(*server);
  expect_success(*client);
  EXPECT_THAT(server->err(), HasSubstr("gloo over lo (127.0.0.1)"));
}

TEST(HostileNetwork, WorldSizesThatDisagreeAreOneLineOnAllRanks) {
  const Rendezvous rendezvous(free_port());
  const auto server = rendezvous.start({.rank = 0, .size = 2}), client = rendezvous.start({.rank = 1, .size = 3});
  expect_line(*server, ConfigError::kExitCode, "world of 3");
  expect_line(*client, ConfigError::kExitCode, "world of 3");
}

TEST(HostileNetwork, ASecondProcessOfOneRankIsOneLineAndHarmsNobody) {
  const Rendezvous rendezvous(free_port());
  constexpr int kUntilStopped = 1'000'000;  // steps: whoever comes later still finds the others
  const auto start = [&](int rank) { return rendezvous.start({.rank = rank, .steps = kUntilStopped}); };
  const auto server = start(0), first = start(1), second = start(1);
  ASSERT_TRUE(eventually([&] { return first->has_ended() || second->has_ended(); }));
  const bool first_lost = first->has_ended();
  expect_line(first_lost ? *first : *second, ConfigError::kExitCode, "two processes say that they are rank 1 of 2");
  ASSERT_TRUE(eventually([&] { return !read_file(rendezvous.dir / "run/metrics.jsonl").empty(); })) << server->err();
  server->signal(SIGTERM);
  for (Program* rank : {server.get(), first_lost ? second.get() : first.get()}) {
    const Result result = rank->wait(seconds(60));
    EXPECT_EQ(result.exit_code, kExitStoppedOnRequest) << result.err;
  }
}

TEST(HostileNetwork, ARankThatNobodyJoinsNamesWhoIsMissing) {
  const Rendezvous rendezvous(free_port());
  const auto server = rendezvous.start({.rank = 0});
  expect_line(*server, CommError::kExitCode, "rank 1");
}

// A stranger's connection to a port of this machine.
class Stranger {
 public:
  explicit Stranger(int port) : socket_(testing_support::connected(port)) {
    const timeval patience{.tv_sec = 0, .tv_usec = 200'000};
    setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }
  bool connected() const { return static_cast<bool>(socket_); }
  // As far as anybody takes it.
  void send_bytes(const std::string& bytes) const {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t n = send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return;
      sent += static_cast<size_t>(n);
    }
  }

 private:
  Descriptor socket_;
};

std::string rubbish(std::mt19937& random, size_t bytes) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

int64_t resident_kib(pid_t pid) {
  std::ifstream status(cat("/proc/", pid, "/status"));
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == "VmRSS:" && status >> kib) return kib;
  }
  return 0;
}

// What strangers send; some connections stay open. `hold` keeps those for as long as it lives.
void send_rubbish(int port, std::vector<std::unique_ptr<Stranger>>& hold) {
  constexpr size_t kMegabyte = size_t{1} << 20;
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) hold.push_back(std::make_unique<Stranger>(port));  // they say nothing, ever
  for (int i = 0; i < 8; ++i) Stranger(port).send_bytes(rubbish(random, kMegabyte));
  for (int first = 0; first < 256; ++first) {  // each first byte, so each kind of query, and then huge lengths
    Stranger(port).send_bytes(cat(static_cast<char>(first), std::string(64, '\xff')));
  }
  for (int query = 0; query < 24; ++query) {  // after the store's own greeting
    constexpr std::string_view kGreeting("\0\xce\xf7\x85\x3c", 5);
    Stranger(port).send_bytes(cat(kGreeting, static_cast<char>(query), std::string(64, '\xff')));
  }
  Stranger(port).send_bytes("GET / HTTP/1.1\r\nHost: lockstep\r\n\r\n");
  hold.push_back(std::make_unique<Stranger>(port));
  hold.back()->send_bytes(rubbish(random, kMegabyte));
}

TEST(HostileNetwork, RubbishAtTheRendezvousHarmsNobody) {
  constexpr int64_t kGrowthKib = 32 << 10;
  const Rendezvous rendezvous(free_port());
  constexpr int kPatience = 30;
  const auto server = rendezvous.start({.rank = 0, .timeout = kPatience});
  ASSERT_TRUE(eventually([&] { return Stranger(rendezvous.port).connected(); })) << server->err();
  const pid_t pid = server->processes("lockstep-worker").at(0);
  const int64_t before = resident_kib(pid);
  std::vector<std::unique_ptr<Stranger>> hold;
  send_rubbish(rendezvous.port, hold);  // before the handshake
  EXPECT_LT(resident_kib(pid) - before, kGrowthKib);
  const auto client = rendezvous.start({.rank = 1, .timeout = kPatience});
  send_rubbish(rendezvous.port, hold);  // and during it
  expect_success(*server);
  expect_success(*client);
}

// The store's own protocol begins with a byte 0; whoever sends it and then falls silent stops c10d's store for all.
TEST(HostileNetwork, HalfAQueryEndsInOneLine) {
  const Rendezvous rendezvous(free_port());
  const auto server = rendezvous.start({.rank = 0});
  ASSERT_TRUE(eventually([&] { return Stranger(rendezvous.port).connected(); })) << server->err();
  const Stranger half(rendezvous.port);
  half.send_bytes(std::string(1, '\0'));
  const auto client = rendezvous.start({.rank = 1});
  expect_line(*server, CommError::kExitCode, "rank");
  expect_line(*client, CommError::kExitCode, "rank");
}

}  // namespace
}  // namespace lockstep::e2e
