// etcd's keys and leases, through its JSON gateway (https://etcd.io/docs/v3.5/dev-guide/api_grpc_gateway).
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lockstep/launch/etcd/http_client.h"

namespace lockstep::launch {

struct EtcdOptions {
  std::vector<std::string> endpoints;  // "host:2379" or "https://host:2379", tried in their order
  std::string user = {}, password = {};
  HttpClient::Options http = {};
};

// "http://host:2379", as an endpoint; an IPv6 address in brackets.
std::string etcd_url(const std::string& scheme, const std::string& host, int port);

struct EtcdValue {
  std::string key, value;
  int64_t created = 0, modified = 0;  // revisions
};

// What has to hold for a write: the key's last revision; 0: it is not there.
struct EtcdCondition {
  std::string key;
  int64_t modified = 0;
};

// One thread. All calls throw CommError that names the endpoints if none of them answers, or for an answer that is not
// etcd's, and ConfigError for what etcd refuses: a user, a certificate.
class EtcdClient {
 public:
  explicit EtcdClient(EtcdOptions options);

  // Returns a new lease, which ends after so many seconds without keep_alive(), and with it its keys.
  int64_t grant(int seconds);
  bool keep_alive(int64_t lease);  // false: it has ended
  void revoke(int64_t lease);
  // Writes a key; with a lease, for as long as that lives. Returns false, and writes nothing, if the lease has ended.
  bool put(const std::string& key, const std::string& value, int64_t lease = 0);
  // Writes a key if all conditions hold. Returns whether it did.
  bool put_if(const std::vector<EtcdCondition>& conditions, const std::string& key, const std::string& value);
  // Deletes all keys that begin so.
  void remove(const std::string& prefix);
  // All keys that begin so, by key.
  std::vector<EtcdValue> list(const std::string& prefix);

 private:
  nlohmann::json ask(const std::string& path, const nlohmann::json& body, int expected = 0);
  nlohmann::json ask_any(const std::string& path, const nlohmann::json& body);
  void authenticate();

  EtcdOptions options_;
  std::vector<std::unique_ptr<HttpClient>> clients_;  // of the endpoints
  size_t current_ = 0;                                // the one that has answered last
  std::string token_;
};

}  // namespace lockstep::launch
