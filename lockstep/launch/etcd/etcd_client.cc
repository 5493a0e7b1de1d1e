#include "lockstep/launch/etcd/etcd_client.h"

#include <openssl/evp.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/base/text.h"

namespace lockstep::launch {
namespace {

using nlohmann::json;

constexpr int kLeaseNotFound = 5;     // gRPC's NOT_FOUND
constexpr int kUnauthenticated = 16;  // a token that has ended
constexpr int kPermissionDenied = 7;
constexpr int kInvalid = 3;  // also: without a user, where one is asked for
constexpr int kUnknown = 2;

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

// Returns what `read` returns. Something else than etcd, such as a proxy, may have answered.
template <typename Read>
auto understood(const json& answer, Read read) {
  try {
    return read(answer);
  } catch (const std::exception&) {  // of a wrong type, or no number
    throw CommError("etcd: an answer that can't be understood: ", answer.dump().substr(0, 120));
  }
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

// An answer that is no JSON has no code, and its text for a message, on one line.
json parsed(const HttpAnswer& answer) {
  json body = json::parse(answer.text, nullptr, /*allow_exceptions=*/false);
  if (body.is_object()) return body;
  return {{"error", cat("HTTP ", answer.status, ": ", shown(answer.text.substr(0, 120)))}, {"code", kUnknown}};
}

std::string with_scheme(const std::string& endpoint) {
  return endpoint.find("://") == std::string::npos ? "http://" + endpoint : endpoint;
}

int code_of(const json& answer) {
  const auto found = answer.find("code");
  if (found == answer.end()) return 0;
  return found->is_number_integer() ? found->get<int>() : kUnknown;
}

std::string message_of(const json& answer) {
  const auto error = answer.find("error");
  return error != answer.end() && error->is_string() ? error->get<std::string>() : answer.dump().substr(0, 120);
}

}  // namespace

std::string etcd_url(const std::string& scheme, const std::string& host, int port) {
  return cat(scheme, "://", host.find(':') == std::string::npos ? host : cat('[', host, ']'), ':', port);
}

EtcdClient::EtcdClient(EtcdOptions options) : options_(std::move(options)) {
  for (const std::string& endpoint : options_.endpoints) {
    clients_.push_back(std::make_unique<HttpClient>(with_scheme(endpoint), options_.http));
  }
  if (clients_.empty()) throw ConfigError("etcd: no endpoint; type --rdzv-endpoint HOST:2379");
}

// Asks the endpoint that answered last, and then the others. An answer with an error of etcd's is one.
json EtcdClient::ask_any(const std::string& path, const json& body) {
  const std::string text = body.dump();
  std::string why;
  size_t refused = 0;
  for (size_t tried = 0; tried < clients_.size(); ++tried) {
    HttpClient& client = *clients_[current_];
    const HttpAnswer answer = client.post(path, text, token_);
    json found = parsed(answer);
    if (answer.status == 400 && answer.text.find("CommonName of client") != std::string::npos) {
      throw ConfigError("etcd at ", client.server(), ": with users its JSON gateway takes no client certificate that ",
                        "has a CommonName; make one without, or leave cert and key of --rdzv-conf out");
    }
    if (answer.status != 0 && answer.status < 500) return found;
    why += cat(why.empty() ? "" : "; ", client.server(), ": ", answer.status == 0 ? answer.text : message_of(found));
    refused += answer.refused ? 1 : 0;
    current_ = (current_ + 1) % clients_.size();
  }
  if (refused == clients_.size()) throw ConfigError("etcd at ", why, "; correct cacert, cert or key of --rdzv-conf");
  throw CommError("etcd does not answer (", why, ")");
}

void EtcdClient::authenticate() {
  token_.clear();
  const json answer = ask_any("/v3/auth/authenticate", {{"name", options_.user}, {"password", options_.password}});
  if (!answer.contains("token") || !answer["token"].is_string()) {
    throw ConfigError("etcd refuses user ", options_.user, ": ", message_of(answer),
                      "; correct user or password of --rdzv-conf");
  }
  token_ = answer["token"].get<std::string>();
}

// Returns an answer without an error, or one with the code that the caller expects.
json EtcdClient::ask(const std::string& path, const json& body, int expected) {
  const bool as_user = !options_.user.empty();
  if (as_user && token_.empty()) authenticate();
  json answer = ask_any(path, body);
  // Also a token of before etcd's users have changed is invalid.
  if (as_user && (code_of(answer) == kUnauthenticated || code_of(answer) == kInvalid)) {
    authenticate();
    answer = ask_any(path, body);
  }
  const int code = code_of(answer);
  if (code == 0 || code == expected) return answer;
  if (code == kPermissionDenied || code == kInvalid) {
    throw ConfigError("etcd: ", message_of(answer), "; correct user or password of --rdzv-conf");
  }
  throw CommError("etcd: ", message_of(answer));
}

int64_t EtcdClient::grant(int seconds) {
  return understood(ask("/v3/lease/grant", {{"TTL", std::to_string(seconds)}}),
                    [](const json& answer) { return number(answer, "ID"); });
}

bool EtcdClient::keep_alive(int64_t lease) {
  const json answer = ask("/v3/lease/keepalive", {{"ID", std::to_string(lease)}}, kLeaseNotFound);
  if (answer.contains("code")) return false;
  if (!answer.contains("result") || !answer["result"].is_object())
    throw CommError("etcd: a lease was not renewed: ", answer.dump().substr(0, 120));
  return understood(answer, [](const json& renewed) { return number(renewed.at("result"), "TTL") > 0; });
}

void EtcdClient::revoke(int64_t lease) { ask("/v3/lease/revoke", {{"ID", std::to_string(lease)}}, kLeaseNotFound); }

bool EtcdClient::put(const std::string& key, const std::string& value, int64_t lease) {
  json body = {{"key", encoded(key)}, {"value", encoded(value)}};
  if (lease != 0) body["lease"] = std::to_string(lease);
  return !ask("/v3/kv/put", body, kLeaseNotFound).contains("code");
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
  const json answer = ask("/v3/kv/txn", body);
  return understood(answer, [](const json& done) { return done.value("succeeded", false); });
}

void EtcdClient::remove(const std::string& prefix) {
  ask("/v3/kv/deleterange", {{"key", encoded(prefix)}, {"range_end", encoded(end_of(prefix))}});
}

std::vector<EtcdValue> EtcdClient::list(const std::string& prefix) {
  const json body = {{"key", encoded(prefix)}, {"range_end", encoded(end_of(prefix))}};
  return understood(ask("/v3/kv/range", body), [](const json& answer) {
    std::vector<EtcdValue> values;
    if (!answer.contains("kvs")) return values;
    for (const json& each : answer["kvs"]) {
      values.push_back({.key = decoded(each.at("key").get<std::string>()),
                        .value = decoded(each.value("value", std::string())),
                        .created = number(each, "create_revision"),
                        .modified = number(each, "mod_revision")});
    }
    return values;
  });
}

}  // namespace lockstep::launch
