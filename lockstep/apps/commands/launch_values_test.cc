#include "lockstep/apps/commands/launch_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/launch/rank_layout.h"

namespace lockstep::apps {
namespace {

using launch::LogLayout;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;
using testing_support::refusal;

TEST(LaunchValues, Streams) {
  EXPECT_THAT(read_streams("tee", "3", 2), ElementsAre(Pair(LogLayout::kOthers, launch::kBothStreams)));
  EXPECT_THAT(read_streams("tee", "0:3,1:2", 2), UnorderedElementsAre(Pair(0, 3), Pair(1, 2)));
  for (const char* text : {"4", "", "3,1", "0:4", "a:1", "0:1,", "0:1:2"}) {
    EXPECT_THAT(refusal([&] { read_streams("tee", text, 2); }),
                HasSubstr(std::string("--tee ") + text + ": expected 0 (none)"));
  }
  EXPECT_THAT(refusal([] { read_streams("redirects", "2:1", 2); }),
              HasSubstr("--redirects 2:1: there is no local rank 2 of 2"));
}

TEST(LaunchValues, NumbersTextsAndWords) {
  EXPECT_THAT(read_numbers("local-ranks-filter", "0, 2", 3), ElementsAre(0, 2));
  EXPECT_THAT(refusal([] { read_numbers("f", "0,x", 3); }), HasSubstr("expected numbers"));
  EXPECT_THAT(refusal([] { read_numbers("f", "3", 3); }), HasSubstr("there is no local rank 3 of 3"));
  EXPECT_THAT(read_texts("apple,a pear,x,,y"), ElementsAre("apple", "a pear", "x,y"));
  EXPECT_THAT(read_texts(""), IsEmpty());
  EXPECT_THAT(read_words("gpus", "0, GPU-1a"), ElementsAre("0", "GPU-1a"));
  EXPECT_THAT(refusal([] { read_words("gpus", "0,,1"); }), HasSubstr("--gpus 0,,1: expected words"));
  EXPECT_THAT(refusal([] { read_words("gpus", "1,1"); }), HasSubstr("1 stands there twice"));
}

TEST(LaunchValues, Nodes) {
  EXPECT_EQ(read_nodes("3").least, 3);
  EXPECT_EQ(read_nodes("2:2").most, 2);
  EXPECT_EQ(read_nodes("1:4").least, 1);
  EXPECT_EQ(read_nodes("1:4").most, 4);
  EXPECT_THAT(refusal([] { read_nodes("4:1"); }), HasSubstr("type --nnodes 1:4"));
  for (const char* text : {"0", "x", "1:2:3", ":", "-1", ""}) {
    EXPECT_THAT(refusal([&] { read_nodes(text); }), HasSubstr("expected a number of nodes")) << text;
  }
}

TEST(LaunchValues, Endpoints) {
  const auto is = [](const std::string& text, const char* host, int port) {
    const HostPort found = read_endpoint("rdzv-endpoint", text, 7);
    EXPECT_EQ(found.host, host) << text;
    EXPECT_EQ(found.port, port) << text;
  };
  is("node1:29400", "node1", 29400);
  is("node1", "node1", 7);
  is("localhost:0", "localhost", 0);
  is("[::1]:5", "::1", 5);
  is("[::1]", "::1", 7);
  is("fe80::1", "fe80::1", 7);
  for (const char* text : {"a:b", "a:70000", ":5", "a b:5", "tcp://a:5", ""}) {
    EXPECT_THAT(refusal([&] { read_endpoint("master", text, 7); }), HasSubstr("--master ")) << text;
  }
}

TEST(LaunchValues, RendezvousConfiguration) {
  using std::chrono::milliseconds;
  EXPECT_EQ(read_rendezvous_conf("").timeout_ms(), std::chrono::minutes(10));
  EXPECT_EQ(read_rendezvous_conf("is_host=1,join_timeout=2.5").timeout_ms(), milliseconds(2500));
  EXPECT_EQ(read_rendezvous_conf("timeout=900").timeout_ms(), milliseconds(900'000));
  EXPECT_EQ(read_rendezvous_conf("ssl_cert=a,ssl_cert_key=b,ca_cert=c").cert_file, "a") << "torch 2.11's names";
  EXPECT_EQ(read_rendezvous_conf("ssl_cert=a,ssl_cert_key=b,ca_cert=c").ca_file, "c");
  EXPECT_THAT(refusal([] { read_rendezvous_conf("etcd_prefix=/a"); }), HasSubstr("under its --rdzv-id here"));
  EXPECT_THAT(refusal([] { read_rendezvous_conf("jointimeout=2"); }), HasSubstr("did you mean join_timeout?"));
  EXPECT_THAT(refusal([] { read_rendezvous_conf("timeout"); }), HasSubstr("expected KEY=VALUE"));
  EXPECT_THAT(refusal([] { read_rendezvous_conf("timeout=x"); }),
              HasSubstr("--rdzv-conf timeout x: expected a number"));
  EXPECT_THAT(refusal([] { read_rendezvous_conf("close_timeout=x"); }),
              HasSubstr("--rdzv-conf close_timeout x: expected a number"));
  EXPECT_EQ(read_rendezvous_conf("is_host=True").is_host, true);
  EXPECT_EQ(read_rendezvous_conf("is_host=0").is_host, false);
  EXPECT_EQ(read_rendezvous_conf("").is_host, std::nullopt);
  EXPECT_THAT(refusal([] { read_rendezvous_conf("is_host=maybe"); }),
              HasSubstr("is_host=maybe: expected true or false"));
}

TEST(LaunchValues, Signals) {
  check_signals("SIGTERM,SIGINT, SIGHUP,SIGQUIT");
  EXPECT_THAT(refusal([] { check_signals("SIGTERM,SIGFOO"); }), HasSubstr("SIGFOO is not passed on"));
}

}  // namespace
}  // namespace lockstep::apps
