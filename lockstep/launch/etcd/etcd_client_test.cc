#include "lockstep/launch/etcd/etcd_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/launch/etcd/membership.h"
#include "lockstep/launch/etcd/testing/etcd_server.h"
#include "support/ports.h"

namespace lockstep::launch {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing_support::EtcdServer;

bool eventually(const std::function<bool()>& condition) {
  for (int tries = 0; tries < 300; ++tries) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(50));
  }
  return false;
}

TEST(EtcdClient, WritesListsAndComparesKeys) {
  const EtcdServer etcd;
  EtcdClient client({.endpoints = {etcd.endpoint()}});
  const std::string odd = std::string("a\0b\xff \"", 6);
  EXPECT_TRUE(client.put("/t/one", odd));
  EXPECT_TRUE(client.put("/t/two", ""));
  client.put("/u", "other");
  const auto found = client.list("/t/");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].key, "/t/one");
  EXPECT_EQ(found[0].value, odd);
  EXPECT_EQ(found[1].value, "");
  EXPECT_TRUE(client.put_if({{"/t/one", found[0].modified}}, "/t/one", "new"));
  EXPECT_FALSE(client.put_if({{"/t/one", found[0].modified}}, "/t/one", "newer")) << "it has changed since";
  EXPECT_FALSE(client.put_if({{"/t/one", 0}}, "/t/one", "newest")) << "it is there";
  EXPECT_TRUE(client.put_if({{"/t/three", 0}}, "/t/three", "first"));
  EXPECT_EQ(client.list("/t/one")[0].value, "new");
  client.remove("/t/");
  EXPECT_TRUE(client.list("/t/").empty());
  EXPECT_EQ(client.list("/u").size(), 1U);
}

TEST(EtcdClient, KeysLiveAsLongAsTheirLease) {
  const EtcdServer etcd;
  EtcdClient client({.endpoints = {etcd.endpoint()}});
  const int64_t lease = client.grant(5);
  EXPECT_TRUE(client.put("/t/mine", "x", lease));
  EXPECT_TRUE(client.keep_alive(lease));
  EXPECT_EQ(client.list("/t/").size(), 1U);
  client.revoke(lease);
  EXPECT_TRUE(client.list("/t/").empty());
  EXPECT_FALSE(client.keep_alive(lease));
  EXPECT_FALSE(client.put("/t/mine", "x", lease));
}

TEST(EtcdClient, AsksTheNextEndpointWhereOneDoesNotAnswer) {
  const EtcdServer etcd;
  EtcdClient client({.endpoints = {"127.0.0.1:1", "http://" + etcd.endpoint()}});
  EXPECT_TRUE(client.put("/t", "x"));
  EtcdClient none({.endpoints = {"127.0.0.1:1"}});
  try {
    none.list("/");
    FAIL() << "nobody listens there";
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), HasSubstr("etcd does not answer (http://127.0.0.1:1: "));
  }
}

// A proxy, or another server at etcd's port.
class Impostor {
 public:
  explicit Impostor(const std::string& body)
      : answer_("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                body),
        thread_([this] { serve(); }) {}
  ~Impostor() {
    shutdown(listener_.descriptor(), SHUT_RDWR);
    thread_.join();
  }
  Impostor(const Impostor&) = delete;
  Impostor& operator=(const Impostor&) = delete;

  std::string endpoint() const { return "127.0.0.1:" + std::to_string(listener_.port()); }

 private:
  void serve() const {
    for (int peer = 0; (peer = accept(listener_.descriptor(), nullptr, nullptr)) >= 0; close(peer)) {
      char request[4096];
      if (recv(peer, request, sizeof request, 0) > 0) send(peer, answer_.data(), answer_.size(), MSG_NOSIGNAL);
    }
  }

  std::string answer_;
  testing_support::ListeningPort listener_;
  std::thread thread_;
};

TEST(EtcdClient, AnAnswerThatIsNotEtcdsIsAnError) {
  for (const char* body : {"<html>", "[]", R"({"code": "Forbidden"})", R"({"kvs": 3})", R"({"kvs": [{"key": null}]})",
                           R"({"kvs": [{"key": "YQ==", "mod_revision": "x"}]})"}) {
    const Impostor impostor(body);
    EtcdClient client({.endpoints = {impostor.endpoint()}});
    EXPECT_THROW(client.list("/"), CommError) << body;
  }
  const Impostor impostor(R"({"ID": "none", "TTL": {}, "result": 3, "succeeded": "so"})");
  EtcdClient client({.endpoints = {impostor.endpoint()}});
  EXPECT_THROW(client.grant(5), CommError);
  EXPECT_THROW(client.keep_alive(1), CommError);
  EXPECT_THROW(client.put_if({}, "/t", "x"), CommError);
}

// Its certificate is refused, here for there is no file of authorities.
TEST(EtcdClient, AnEndpointThatIsRefusedDoesNotKeepTheOthersFromBeingAsked) {
  const EtcdServer etcd;
  const HttpClient::Options http{.ca_file = "/none"};
  EtcdClient client({.endpoints = {"https://" + etcd.endpoint(), etcd.endpoint()}, .http = http});
  EXPECT_TRUE(client.put("/t", "x"));
  EtcdClient none({.endpoints = {"https://" + etcd.endpoint()}, .http = http});
  try {
    none.list("/");
    FAIL() << "its certificate can't be checked";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("correct cacert, cert or key"));
  }
}

// A server that wants a certificate, and then a user.
class SecuredEtcd : public testing::Test {
 protected:
  // Key and certificate, made by Debian's openssl and signed by `by`, or by themselves.
  void certify(const std::string& name, const std::string& by = "", const std::string& subject = "/CN=test") const {
    const std::string at = dir_ / name, signer = dir_ / by;
    const std::string request = cat("openssl req -newkey rsa:2048 -nodes -keyout ", at, ".key -subj ", subject,
                                    " -addext subjectAltName=IP:127.0.0.1 ");
    const std::string sign = by.empty()
                                 ? cat("-x509 -days 2 -out ", at, ".crt")
                                 : cat("-x509 -days 2 -CA ", signer, ".crt -CAkey ", signer, ".key -out ", at, ".crt");
    ASSERT_EQ(std::system(cat(request, sign, " 2>", at, ".log").c_str()), 0) << at << ".log";
  }
  std::string file(const std::string& name) const { return dir_ / name; }
  HttpClient::Options http(const std::string& name) const {
    return {.ca_file = file("ca.crt"), .cert_file = file(name + ".crt"), .key_file = file(name + ".key")};
  }

  testing_support::TempDir dir_;
};

TEST_F(SecuredEtcd, TakesTheCertificatesAndTheUserOfItsOptions) {
  certify("ca");
  certify("server", "ca");
  certify("client", "ca");
  certify("nameless", "ca", "/O=test");
  certify("stranger");
  const EtcdServer etcd(
      EtcdServer::Options{.scheme = "https",
                          .more = {"--cert-file=" + file("server.crt"), "--key-file=" + file("server.key"),
                                   "--client-cert-auth", "--trusted-ca-file=" + file("ca.crt")}});
  const std::vector<std::string> endpoints = {"https://" + etcd.endpoint()};
  EtcdClient client({.endpoints = endpoints, .http = http("client")});
  const auto answers = [&] {
    try {
      return client.put("/t", "x");
    } catch (const CommError&) {
      return false;  // it starts
    }
  };
  ASSERT_TRUE(eventually(answers));
  EtcdClient stranger({.endpoints = endpoints, .http = http("stranger")});
  EXPECT_ANY_THROW(stranger.put("/t", "y")) << "nobody that it trusts has signed this certificate";
  EtcdClient without({.endpoints = endpoints, .http = {.ca_file = file("ca.crt")}});
  EXPECT_ANY_THROW(without.put("/t", "y"));

  HttpClient admin(endpoints[0], http("client"));
  for (const auto& [path, body] : {std::pair{"/v3/auth/user/add", R"({"name": "root", "password": "p"})"},
                                   {"/v3/auth/role/add", R"({"name": "root"})"},
                                   {"/v3/auth/user/grant", R"({"user": "root", "role": "root"})"},
                                   {"/v3/auth/enable", "{}"}}) {
    ASSERT_EQ(admin.post(path, body, "").status, 200) << path;
  }
  EXPECT_THAT(testing_support::refusal([&] { client.put("/t", "y"); }),
              HasSubstr("takes no client certificate that has a CommonName"));
  EtcdClient nobody({.endpoints = endpoints, .http = http("nameless")});
  EXPECT_THROW(nobody.put("/t", "y"), ConfigError) << "of no user";
  EtcdClient wrong({.endpoints = endpoints, .user = "root", .password = "q", .http = http("nameless")});
  EXPECT_THAT(testing_support::refusal([&] { wrong.put("/t", "y"); }), HasSubstr("etcd refuses user root"));
  EtcdClient user({.endpoints = endpoints, .user = "root", .password = "p", .http = http("nameless")});
  EXPECT_TRUE(user.put("/t", "y"));
  const int64_t lease = user.grant(5);
  EXPECT_TRUE(user.put("/t/mine", "x", lease));
  EXPECT_TRUE(user.keep_alive(lease));
  EXPECT_TRUE(user.put_if({{"/t/three", 0}}, "/t/three", "first"));
  EXPECT_EQ(user.list("/t").size(), 3U);
}

Membership::Options member(const EtcdServer& etcd, const std::string& id, EpochLimits limits) {
  Membership::Options options{.etcd = {.endpoints = {etcd.endpoint()}},
                              .run = "r",
                              .self = {.id = id, .host = id, .address = "127.0.0.1", .nproc = 1, .ports = {}},
                              .limits = limits,
                              .timeout = 30};
  options.draw_ports = [] { return std::vector<int>{1, 2}; };
  return options;
}

TEST(Membership, NodesMeetTrainAndLeave) {
  const EtcdServer etcd;
  const EpochLimits limits{.least = 2, .most = 2};
  Membership a(member(etcd, "a", limits)), b(member(etcd, "b", limits));
  const auto one = a.wait_after(0), two = b.wait_after(0);
  EXPECT_EQ(one->encode(), two->encode());
  EXPECT_EQ(one->nodes[0].id, "a") << "the eldest is first";
  EXPECT_EQ(a.ranks_must_end(1).why, "");
  a.tell(1, {});
  b.tell(1, {});
  for (Membership* each : {&a, &b}) EXPECT_TRUE(each->wait_after(1)->ended);
}

TEST(Membership, OthersGoOnWithoutOneThatIsGone) {
  const EtcdServer etcd;
  const EpochLimits limits{.least = 1, .most = 2, .max_restarts = 1, .last_call = 1};
  Membership a(member(etcd, "a", limits));
  std::optional<Membership> b(member(etcd, "b", limits));
  ASSERT_EQ(a.wait_after(0)->nodes.size(), 2U);
  b.reset();
  EXPECT_TRUE(eventually([&] { return !a.ranks_must_end(1).why.empty(); }));
  a.tell(1, {.exit_code = CommError::kExitCode, .stopped = true});
  const auto next = a.wait_after(1);
  EXPECT_EQ(next->nodes.size(), 1U);
  EXPECT_EQ(next->restarts, 1);
}

// Its ranks have failed before this node has heard of the epoch.
TEST(Membership, ABrokenEpochIsEndedByAllOfItsNodes) {
  const EtcdServer etcd;
  const EpochLimits limits{.least = 2, .most = 2, .max_restarts = 1};
  Membership a(member(etcd, "a", limits)), b(member(etcd, "b", limits));
  b.wait_after(0);
  b.tell(1, {.exit_code = 3, .text = "exited with code 3"});
  EXPECT_TRUE(eventually([&] { return !a.ranks_must_end(1).why.empty(); }));
  EXPECT_EQ(a.wait_after(0)->number, 1);
  a.tell(1, {.exit_code = CommError::kExitCode, .stopped = true});
  EXPECT_EQ(a.wait_after(1)->number, 2);
  EXPECT_EQ(b.wait_after(1)->number, 2);
}

// Others train longer than a node waits for an epoch.
TEST(Membership, ANodeThatIsDoneOrSpareWaitsForTheOthers) {
  const EtcdServer etcd;
  const EpochLimits limits{.least = 2, .most = 2};
  const auto impatient = [&](const std::string& id) {
    Membership::Options options = member(etcd, id, limits);
    options.timeout = 1.5;
    return options;
  };
  Membership a(impatient("a")), b(impatient("b"));
  EXPECT_EQ(a.wait_after(0)->number, 1);
  b.wait_after(0);
  Membership spare(impatient("c"));
  b.tell(1, {});
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(3000));
    a.tell(1, {});
  });
  EXPECT_TRUE(b.wait_after(1)->ended);
  EXPECT_TRUE(spare.wait_after(0)->ended);
  later.join();
}

// Its lease ends here before it does at etcd.
TEST(Membership, ANodeThatDoesNotReachEtcdStopsBeforeOthersActInItsPlace) {
  EtcdServer etcd;
  const EpochLimits limits{.least = 1, .most = 1, .max_restarts = 1};
  Membership a(member(etcd, "a", limits));
  a.wait_after(0);
  etcd.stop();
  EXPECT_TRUE(eventually([&] { return !a.ranks_must_end(1).why.empty(); }));
  EXPECT_TRUE(a.ranks_must_end(1).at_once);
  etcd.go_on();
  // etcd has ended the lease, or has heard of this node in time: then the run goes on.
  try {
    a.tell(1, {.exit_code = CommError::kExitCode, .stopped = true});
    EXPECT_EQ(a.wait_after(1)->number, 2);
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), HasSubstr("lease"));
  }
}

TEST(Membership, ANodeThatWasAwayComesBackToItsOwnRunAlone) {
  const EtcdServer etcd;
  const EpochLimits limits{.least = 1, .most = 1, .max_restarts = 2};
  std::optional<Membership> a(member(etcd, "a", limits));
  ASSERT_EQ(a->wait_after(0)->number, 1);
  Membership::Options again = member(etcd, "a2", limits);
  again.earlier = a->earlier();
  ASSERT_TRUE(again.earlier);
  EXPECT_EQ(again.earlier->run, "a");
  a.reset();
  std::optional<Membership> back(again);
  EXPECT_EQ(back->wait_after(0)->number, 2) << "the run goes on with it";
  back->tell(2, {});
  EXPECT_TRUE(back->wait_after(2)->ended);
  back.reset();
  Membership other(member(etcd, "b", limits));
  EXPECT_EQ(other.wait_after(0)->run, "b");
  again.self.id = "a3";
  try {
    const Membership lost(again);
    FAIL() << "its run is over";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("another one has its id now"));
  }
  other.tell(other.wait_after(0)->number, {});
}

TEST(Membership, AShortOutageIsNone) {
  EtcdServer etcd;
  Membership a(member(etcd, "a", {.least = 1, .most = 1}));
  a.wait_after(0);
  etcd.stop();
  std::this_thread::sleep_for(milliseconds(2500));
  etcd.go_on();
  std::this_thread::sleep_for(milliseconds(3000));
  EXPECT_EQ(a.ranks_must_end(1).why, "");
  a.tell(1, {});
  EXPECT_EQ(a.wait_after(1)->exit_code, 0);
}

}  // namespace
}  // namespace lockstep::launch
