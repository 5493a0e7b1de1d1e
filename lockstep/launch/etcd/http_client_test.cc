#include "lockstep/launch/etcd/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/launch/etcd/testing/etcd_server.h"

namespace lockstep::launch {
namespace {

using testing::HasSubstr;

TEST(HttpClient, PostsAndReadsOneAnswerAfterTheOther) {
  const testing_support::EtcdServer etcd;
  HttpClient client("http://" + etcd.endpoint(), {});
  for (int times = 0; times < 2; ++times) {
    const HttpAnswer answer = client.post("/v3/kv/put", R"({"key": "YQ==", "value": "YQ=="})");
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(answer.text.starts_with("{\"header\":")) << answer.text;
  }
  EXPECT_EQ(client.post("/v3/none", "{}").status, 404);
}

TEST(HttpClient, SaysWhyThereIsNoAnswer) {
  HttpClient client("http://127.0.0.1:1", {});
  const HttpAnswer answer = client.post("/", "{}");
  EXPECT_EQ(answer.status, 0);
  EXPECT_THAT(answer.text, HasSubstr("127.0.0.1"));
}

}  // namespace
}  // namespace lockstep::launch
