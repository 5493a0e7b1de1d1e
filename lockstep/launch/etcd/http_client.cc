#include "lockstep/launch/etcd/http_client.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <sys/socket.h>

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/find_function.h"

namespace lockstep::launch {
namespace {

struct Curl {
  decltype(&curl_global_init) start;
  decltype(&curl_easy_init) make;
  decltype(&curl_easy_cleanup) drop;
  decltype(&curl_easy_setopt) set;
  decltype(&curl_easy_perform) perform;
  decltype(&curl_easy_getinfo) get;
  decltype(&curl_slist_append) append;
  decltype(&curl_slist_free_all) free_list;
};

Curl open_curl() {
  constexpr const char* kRemedy = "; install it (Debian: libcurl4)";
  void* const library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    throw ConfigError("etcd is asked by libcurl, which can't be opened: ", why == nullptr ? "" : why, kRemedy);
  }
  Curl curl{};
  const bool whole =
      find_function(library, "curl_global_init", curl.start) && find_function(library, "curl_easy_init", curl.make) &&
      find_function(library, "curl_easy_cleanup", curl.drop) && find_function(library, "curl_easy_setopt", curl.set) &&
      find_function(library, "curl_easy_perform", curl.perform) &&
      find_function(library, "curl_easy_getinfo", curl.get) &&
      find_function(library, "curl_slist_append", curl.append) &&
      find_function(library, "curl_slist_free_all", curl.free_list);
  if (!whole || curl.start(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    throw ConfigError("etcd is asked by libcurl, and libcurl.so.4 is another library", kRemedy);
  }
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

// Ranks that are started meanwhile do not get it.
curl_socket_t open_socket(void*, curlsocktype, curl_sockaddr* at) {
  return socket(at->family, at->socktype | SOCK_CLOEXEC, at->protocol);
}

bool is_refusal(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE;
}

}  // namespace

struct HttpClient::Handle {
  CURL* curl_handle = curl().make();
  std::string text;                  // of the answer
  char error[CURL_ERROR_SIZE] = "";  // of the last call

  Handle() = default;
  ~Handle() { curl().drop(curl_handle); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  template <typename Value>
  void set(CURLoption option, Value value) {
    curl().set(curl_handle, option, value);
  }
};

HttpClient::HttpClient(std::string server, const Options& options)
    : server_(std::move(server)), handle_(std::make_unique<Handle>()) {
  if (handle_->curl_handle == nullptr) throw CommError("libcurl does not start");
  const auto timeout = static_cast<long>(options.timeout.count());
  handle_->set(CURLOPT_NOSIGNAL, 1L);
  handle_->set(CURLOPT_TIMEOUT_MS, timeout);
  handle_->set(CURLOPT_CONNECTTIMEOUT_MS, timeout);
  handle_->set(CURLOPT_NOPROXY, "*");
  handle_->set(CURLOPT_ERRORBUFFER, handle_->error);
  handle_->set(CURLOPT_WRITEFUNCTION, append_to);
  handle_->set(CURLOPT_WRITEDATA, &handle_->text);
  handle_->set(CURLOPT_OPENSOCKETFUNCTION, open_socket);
  for (const auto& [option, file] : {std::pair(CURLOPT_CAINFO, &options.ca_file),
                                     {CURLOPT_SSLCERT, &options.cert_file},
                                     {CURLOPT_SSLKEY, &options.key_file}}) {
    if (!file->empty()) handle_->set(option, file->c_str());
  }
}

HttpClient::~HttpClient() = default;

HttpAnswer HttpClient::post(const std::string& path, const std::string& json, const std::string& token) {
  const std::string url = server_ + path, authorization = "Authorization: " + token;
  curl_slist* headers = curl().append(nullptr, "Content-Type: application/json");
  if (!token.empty()) headers = curl().append(headers, authorization.c_str());
  handle_->text.clear();
  handle_->error[0] = '\0';
  handle_->set(CURLOPT_URL, url.c_str());
  handle_->set(CURLOPT_HTTPHEADER, headers);
  handle_->set(CURLOPT_POSTFIELDSIZE, static_cast<long>(json.size()));
  handle_->set(CURLOPT_POSTFIELDS, json.c_str());
  const CURLcode code = curl().perform(handle_->curl_handle);
  long status = 0;
  curl().get(handle_->curl_handle, CURLINFO_RESPONSE_CODE, &status);
  handle_->set(CURLOPT_HTTPHEADER, static_cast<curl_slist*>(nullptr));
  curl().free_list(headers);
  if (code == CURLE_OK) return {.status = static_cast<int>(status), .text = std::move(handle_->text)};
  const std::string why = handle_->error[0] == '\0' ? cat("curl error ", static_cast<int>(code)) : handle_->error;
  return {.status = 0, .text = why, .refused = is_refusal(code)};
}

}  // namespace lockstep::launch
