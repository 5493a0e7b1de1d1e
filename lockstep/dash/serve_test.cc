#include "lockstep/dash/serve.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"
#include "support/http.h"
#include "support/ports.h"

namespace lockstep::dash {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using testing_support::ask;
using testing_support::connected;
using testing_support::ListeningPort;

int port_of(const std::string& url) { return std::stoi(url.substr(url.rfind(':') + 1)); }

class ServeTest : public ::testing::Test {
 protected:
  testing_support::TempDir run_;
  Beside beside_{run_.path(), {}};
  int port_ = port_of(beside_.url());
};

TEST_F(ServeTest, ShowsTheRunAsItIsNow) {
  EXPECT_THAT(ask(port_, "GET /"), StartsWith("HTTP/1.1 200"));
  std::ofstream(run_ / "metrics.jsonl") << "{\"kind\":\"train\",\"step\":1,\"loss\":2}\n";
  EXPECT_THAT(ask(port_, "GET /content"), HasSubstr("<figcaption>Loss"));
  EXPECT_THAT(ask(port_, "GET /run.json"), HasSubstr("\"step\": 1"));
  EXPECT_THAT(ask(port_, "GET /dash.js"), HasSubstr("text/javascript"));
}

TEST_F(ServeTest, HasNoOtherFiles) {
  std::ofstream(run_ / "secret") << "secret";
  for (const char* path :
       {"/secret", "/../secret", "/%2e%2e/secret", "/content/../secret", "//secret", "/metrics.jsonl"}) {
    EXPECT_THAT(ask(port_, std::string("GET ") + path), StartsWith("HTTP/1.1 404")) << path;
  }
}

TEST_F(ServeTest, AnswersNoPageOfAnotherHost) {
  for (const char* host : {"evil.example", "evil.example:80", "127.0.0.1.evil.example", ""}) {
    const std::string said = ask(port_, "GET /", host);
    EXPECT_THAT(said, StartsWith("HTTP/1.1 403")) << host;
    EXPECT_THAT(said, Not(HasSubstr("<main>")));
  }
  for (const char* host : {"localhost", "localhost:7007", "[::1]:7007"}) {
    EXPECT_THAT(ask(port_, "GET /", host), StartsWith("HTTP/1.1 200")) << host;
  }
}

TEST_F(ServeTest, ChangesNothing) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"}) {
    EXPECT_THAT(ask(port_, std::string(method) + " /"), Not(HasSubstr("200"))) << method;
  }
  EXPECT_THAT(ask(port_, "HEAD /"), Not(HasSubstr("<html")));
}

TEST_F(ServeTest, IsNotHeldUpByOthers) {
  std::vector<Descriptor> silent;
  for (int i = 0; i < 50; ++i) silent.push_back(connected(port_));
  send(silent[0].get(), "GET / HT", 8, MSG_NOSIGNAL);
  const std::string rubbish(100'000, '\xff');
  send(silent[1].get(), rubbish.data(), rubbish.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  EXPECT_THAT(ask(port_, "GET /"), StartsWith("HTTP/1.1 200"));
}

TEST_F(ServeTest, SaysWhatBrowsersMayDoWithIt) {
  const std::string said = ask(port_, "GET /");
  EXPECT_THAT(said, HasSubstr("Content-Security-Policy: default-src 'none';"));
  EXPECT_THAT(said, HasSubstr("Cache-Control: no-store"));
}

TEST_F(ServeTest, TakesTheNextFreePort) {
  const Beside other(run_.path(), {});
  EXPECT_NE(other.url(), beside_.url());
  EXPECT_THAT(ask(port_of(other.url()), "GET /"), StartsWith("HTTP/1.1 200"));
}

TEST(Beside, EndsWithItsObject) {
  const testing_support::TempDir run;
  int port = 0;
  {
    const Beside beside(run.path(), {});
    port = port_of(beside.url());
  }
  EXPECT_EQ(ask(port, "GET /"), "");
}

TEST(Beside, EndsWithAMakerThatIsKilled) {
  const testing_support::TempDir run;
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Descriptor reads(ends[0]);
  Descriptor writes(ends[1]);
  const pid_t maker = fork();
  if (maker == 0) {
    const Beside beside(run.path(), {});
    const int port = port_of(beside.url());
    if (write(writes.get(), &port, sizeof port) == sizeof port) pause();
    _exit(0);
  }
  writes = Descriptor();
  int port = 0;
  ASSERT_EQ(read(reads.get(), &port, sizeof port), static_cast<ssize_t>(sizeof port));
  EXPECT_THAT(ask(port, "GET /"), StartsWith("HTTP/1.1 200"));
  kill(maker, SIGKILL);
  waitpid(maker, nullptr, 0);
  bool gone = false;
  for (int tries = 0; tries < 500 && !gone; ++tries) {
    usleep(10'000);
    gone = ask(port, "GET /").empty();
  }
  EXPECT_TRUE(gone);
}

TEST(Beside, APortOfAnotherProgramIsOneLine) {
  const testing_support::TempDir run;
  const ListeningPort taken;
  try {
    const Beside beside(run.path(), {.port = taken.port()});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--dashboard: the dashboard can't listen at 127.0.0.1:"));
    EXPECT_THAT(error.what(), HasSubstr("choose another port"));
  }
}

TEST(HttpServer, AnAddressOfAnotherMachineIsOneLine) {
  const auto nothing = [](const std::string&) { return HttpAnswer{}; };
  EXPECT_THROW(HttpServer({.host = "192.0.2.1"}, nothing), ConfigError);
  EXPECT_THROW(HttpServer({.host = "nobody.invalid"}, nothing), ConfigError);
}

}  // namespace
}  // namespace lockstep::dash
