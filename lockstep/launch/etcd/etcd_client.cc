#include "lockstep/launch/etcd/etcd_client.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <openssl/evp.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

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

namespace {

// libcurl's functions. It is opened when etcd is asked: it brings some twenty libraries, which would slow down every
// start of the launcher.
struct Curl {
  decltype(&curl_easy_init) make;
  decltype(&curl_easy_cleanup) drop;
  decltype(&curl_easy_setopt) set;
  decltype(&curl_easy_perform) perform;
  decltype(&curl_easy_getinfo) get;
  decltype(&curl_slist_append) append;
  decltype(&curl_slist_free_all) free_list;
};

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw ConfigError("libcurl.so.4 has no ", name);
}

Curl open_curl() {
  void* const library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    throw ConfigError("etcd is asked by libcurl, which is not here: ", why == nullptr ? "" : why,
                      "; install it (Debian: libcurl4)");
  }
  Curl curl{};
  find(library, "curl_easy_init", curl.make);
  find(library, "curl_easy_cleanup", curl.drop);
  find(library, "curl_easy_setopt", curl.set);
  find(library, "curl_easy_perform", curl.perform);
  find(library, "curl_easy_getinfo", curl.get);
  find(library, "curl_slist_append", curl.append);
  find(library, "curl_slist_free_all", curl.free_list);
  return curl;
}

const Curl& curl() {
  static const Curl functions = open_curl();
  return functions;
}

size_t append_to(const char* data, size_t, size_t size, void* text) {
  static_cast<std::string*>(text)->append(data, size);
  return size;
}

bool is_refusal(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE;
}

}  // namespace

struct EtcdClient::Connection {
  std::string endpoint;
  CURL* handle;
  std::string text;  // of the answer
  char error[CURL_ERROR_SIZE] = "";

  Connection(const std::string& at, const EtcdOptions& options) : endpoint(at), handle(curl().make()) {
    if (handle == nullptr) throw CommError("libcurl does not start");
    const auto milliseconds = static_cast<long>(options.timeout.count());
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_TIMEOUT_MS, milliseconds);
    set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds);
    set(CURLOPT_NOPROXY, "*");
    set(CURLOPT_ERRORBUFFER, error);
    set(CURLOPT_WRITEFUNCTION, append_to);
    set(CURLOPT_WRITEDATA, &text);
    for (const auto& [option, file] : {std::pair(CURLOPT_CAINFO, &options.ca_file),
                                       {CURLOPT_SSLCERT, &options.cert_file},
                                       {CURLOPT_SSLKEY, &options.key_file}}) {
      if (!file->empty()) set(option, file->c_str());
    }
  }
  ~Connection() { curl().drop(handle); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  template <typename Value>
  void set(CURLoption option, Value value) {
    curl().set(handle, option, value);
  }
};

EtcdClient::EtcdClient(EtcdOptions options) : options_(std::move(options)) {
  for (const std::string& endpoint : options_.endpoints) {
    connections_.push_back(std::make_unique<Connection>(with_scheme(endpoint), options_));
  }
  if (connections_.empty()) throw ConfigError("etcd: no endpoint; type --rdzv-endpoint HOST:2379");
}

EtcdClient::~EtcdClient() = default;

// Returns the body; `status`: HTTP's, or 0 if nobody answers, and then the body says why.
std::string EtcdClient::ask_once(Connection& connection, const std::string& path, const std::string& body,
                                 int* status) {
  const std::string url = connection.endpoint + path, authorization = "Authorization: " + token_;
  curl_slist* headers = curl().append(nullptr, "Content-Type: application/json");
  if (!token_.empty()) headers = curl().append(headers, authorization.c_str());
  connection.text.clear();
  connection.error[0] = '\0';
  connection.set(CURLOPT_URL, url.c_str());
  connection.set(CURLOPT_HTTPHEADER, headers);
  connection.set(CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
  connection.set(CURLOPT_POSTFIELDS, body.c_str());
  const CURLcode code = curl().perform(connection.handle);
  long answered = 0;
  curl().get(connection.handle, CURLINFO_RESPONSE_CODE, &answered);
  connection.set(CURLOPT_HTTPHEADER, static_cast<curl_slist*>(nullptr));
  curl().free_list(headers);
  *status = code == CURLE_OK ? static_cast<int>(answered) : 0;
  if (code == CURLE_OK) return connection.text;
  const std::string why = connection.error[0] == '\0' ? cat("curl error ", static_cast<int>(code)) : connection.error;
  if (is_refusal(code)) {
    throw ConfigError("etcd at ", connection.endpoint, ": ", why, "; correct cacert, cert or key of --rdzv-conf");
  }
  return why;
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
