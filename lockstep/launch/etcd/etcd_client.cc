#include "lockstep/launch/etcd/etcd_client.h"

#include <httplib.h>
#include <openssl/evp.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::launch {
namespace {

using nlohmann::json;

constexpr int kLeaseNotFound = 5;     // gRPC's NOT_FOUND
constexpr int kUnauthenticated = 16;  // a token that has ended
constexpr int kPermissionDenied = 7;

std::string encoded(const std::string& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  text.resize(static_cast<size_t>(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                                  reinterpret_cast<const unsigned char*>(bytes.data()),
                                                  static_cast<int>(bytes.size()))));
  return text;
}

std::string decoded(const std::string& text) {
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  const auto padding = static_cast<int>(std::count(text.begin(), text.end(), '='));
  bytes.resize(static_cast<size_t>(std::max(0, size - padding)));
  return bytes;
}

// The gateway writes 64-bit numbers as strings, and leaves zeros out.
int64_t number(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return 0;
  return found->is_string() ? std::stoll(found->get<std::string>()) : found->get<int64_t>();
}

// The key behind the last that begins so.
std::string end_of(std::string prefix) {
  ++prefix.back();
  return prefix;
}

std::string with_scheme(const std::string& endpoint) {
  return endpoint.find("://") == std::string::npos ? "http://" + endpoint : endpoint;
}

json answer_of(const std::string& text) {
  json answer = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) throw CommError("etcd answers what is no JSON: ", text.substr(0, 80));
  return answer;
}

int code_of(const std::string& text) {
  const json answer = json::parse(text, nullptr, false);
  return answer.is_object() ? static_cast<int>(number(answer, "code")) : 0;
}

std::string message_of(const std::string& text) {
  const json answer = json::parse(text, nullptr, false);
  return answer.is_object() && answer.contains("error") && answer["error"].is_string()
             ? answer["error"].get<std::string>()
             : text.substr(0, 120);
}

}  // namespace

struct EtcdClient::Connection {
  std::string endpoint;
  httplib::Client client;
  Connection(const std::string& at, const EtcdOptions& options)
      : endpoint(at), client(at, options.cert_file, options.key_file) {
    const auto timeout = options.timeout;
    client.set_connection_timeout(timeout);
    client.set_read_timeout(timeout);
    client.set_write_timeout(timeout);
    client.set_keep_alive(true);
    client.set_tcp_nodelay(true);
    if (!options.ca_file.empty()) client.set_ca_cert_path(options.ca_file.c_str());
  }
};

EtcdClient::EtcdClient(EtcdOptions options) : options_(std::move(options)) {
  for (const std::string& endpoint : options_.endpoints) {
    connections_.push_back(std::make_unique<Connection>(with_scheme(endpoint), options_));
  }
  if (connections_.empty()) throw ConfigError("etcd: no endpoint; type --rdzv-endpoint HOST:2379");
}

EtcdClient::~EtcdClient() = default;

// Returns the body; `status`: HTTP's, or 0 if nobody answers, and then the body says why. The gateway ends an error by
// a trailer, which cpp-httplib takes for a broken answer: what came before it counts.
std::string EtcdClient::ask_once(Connection& connection, const std::string& path, const std::string& body,
                                 int* status) {
  for (int attempt = 0;; ++attempt) {
    std::string text;
    *status = 0;
    httplib::Request request;
    request.method = "POST";
    request.path = path;
    request.body = body;
    request.set_header("Content-Type", "application/json");
    if (!token_.empty()) request.set_header("Authorization", token_);
    request.response_handler = [&](const httplib::Response& response) {
      *status = response.status;
      return true;
    };
    request.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
      text.append(data, size);
      return true;
    };
    const Stopwatch watch;
    const auto result = connection.client.send(request);
    if (result || (*status >= 400 && json::accept(text))) return text;
    *status = 0;
    connection.client.stop();
    // A connection that was kept may have been closed by the other side.
    const bool was_kept = result.error() == httplib::Error::Read || result.error() == httplib::Error::Write;
    const bool timed_out = watch.seconds() * 2000 > static_cast<double>(options_.timeout.count());
    const bool refused =
        result.error() == httplib::Error::SSLServerVerification || result.error() == httplib::Error::SSLLoadingCerts;
    if (refused) {
      throw ConfigError("etcd at ", connection.endpoint, ": ", httplib::to_string(result.error()),
                        "; correct cacert, cert or key of --rdzv-conf");
    }
    if (attempt > 0 || !was_kept || timed_out) return httplib::to_string(result.error());
  }
}

// Asks the endpoint that answered last, and then the others. A body with an error code of etcd's is returned, too.
std::string EtcdClient::ask(const std::string& path, const std::string& body) {
  if (!options_.user.empty() && token_.empty() && path != "/v3/auth/authenticate") authenticate();
  std::string why;
  for (size_t tried = 0; tried < connections_.size(); ++tried) {
    Connection& connection = *connections_[current_];
    int status = 0;
    std::string text = ask_once(connection, path, body, &status);
    const int code = code_of(text);
    if (code == kUnauthenticated && !options_.user.empty() && path != "/v3/auth/authenticate") {
      token_.clear();
      authenticate();
      text = ask_once(connection, path, body, &status);
    }
    const bool unavailable = status == 0 || status >= 500;
    if (!unavailable || code == kLeaseNotFound) return text;
    why += cat(why.empty() ? "" : "; ", connection.endpoint, ": ", status == 0 ? text : message_of(text));
    current_ = (current_ + 1) % connections_.size();
  }
  throw CommError("etcd does not answer (", why, ")");
}

void EtcdClient::authenticate() {
  const std::string text =
      ask("/v3/auth/authenticate", json{{"name", options_.user}, {"password", options_.password}}.dump());
  const json answer = answer_of(text);
  if (!answer.contains("token")) {
    throw ConfigError("etcd refuses user ", options_.user, ": ", message_of(text),
                      "; correct the name or the password");
  }
  token_ = answer["token"].get<std::string>();
}

namespace {

// An answer that is no error, or one with the code that the caller expects.
json checked(const std::string& text, int expected = 0) {
  json answer = answer_of(text);
  const auto code = static_cast<int>(number(answer, "code"));
  if (code == 0 || code == expected) return answer;
  if (code == kPermissionDenied) throw ConfigError("etcd: ", message_of(text), "; give a user who may (--rdzv-conf)");
  throw CommError("etcd: ", message_of(text));
}

}  // namespace

int64_t EtcdClient::grant(int seconds) {
  return number(checked(ask("/v3/lease/grant", json{{"TTL", std::to_string(seconds)}}.dump())), "ID");
}

bool EtcdClient::keep_alive(int64_t lease) {
  const json answer = checked(ask("/v3/lease/keepalive", json{{"ID", std::to_string(lease)}}.dump()), kLeaseNotFound);
  if (answer.contains("code")) return false;
  if (!answer.contains("result")) throw CommError("etcd: a lease was not renewed: ", answer.dump().substr(0, 120));
  return number(answer["result"], "TTL") > 0;
}

void EtcdClient::revoke(int64_t lease) {
  checked(ask("/v3/lease/revoke", json{{"ID", std::to_string(lease)}}.dump()), kLeaseNotFound);
}

bool EtcdClient::put(const std::string& key, const std::string& value, int64_t lease) {
  json body = {{"key", encoded(key)}, {"value", encoded(value)}};
  if (lease != 0) body["lease"] = std::to_string(lease);
  return !checked(ask("/v3/kv/put", body.dump()), kLeaseNotFound).contains("code");
}

bool EtcdClient::put_if(const std::vector<EtcdCondition>& conditions, const std::string& key,
                        const std::string& value) {
  json compare = json::array();
  for (const EtcdCondition& each : conditions) {
    compare.push_back({{"key", encoded(each.key)},
                       {"target", "MOD"},
                       {"result", "EQUAL"},
                       {"mod_revision", std::to_string(each.modified)}});
  }
  const json write = {{"request_put", {{"key", encoded(key)}, {"value", encoded(value)}}}};
  const json body = {{"compare", compare}, {"success", json::array({write})}};
  const json answer = checked(ask("/v3/kv/txn", body.dump()));
  return answer.contains("succeeded") && answer["succeeded"].get<bool>();
}

std::vector<EtcdValue> EtcdClient::list(const std::string& prefix) {
  const json body = {{"key", encoded(prefix)}, {"range_end", encoded(end_of(prefix))}};
  const json answer = checked(ask("/v3/kv/range", body.dump()));
  std::vector<EtcdValue> values;
  if (!answer.contains("kvs")) return values;
  for (const json& each : answer["kvs"]) {
    values.push_back({.key = decoded(each.at("key").get<std::string>()),
                      .value = decoded(each.value("value", std::string())),
                      .created = number(each, "create_revision"),
                      .modified = number(each, "mod_revision")});
  }
  return values;
}

}  // namespace lockstep::launch
