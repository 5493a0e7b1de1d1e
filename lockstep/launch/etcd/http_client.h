// HTTP by libcurl, which is opened when the first client is made: it brings some twenty libraries, which would slow
// down every start of the launcher.
#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace lockstep::launch {

struct HttpAnswer {
  int status = 0;        // HTTP's; 0: there is none
  std::string text;      // the body; without one why
  bool refused = false;  // without one: a certificate was, here or there
};

// One server. One thread.
class HttpClient {
 public:
  struct Options {
    std::string ca_file = {}, cert_file = {}, key_file = {};  // PEM, with https
    std::chrono::milliseconds timeout{1500};                  // for an answer
  };

  // `server`: "http://host:2379". Throws ConfigError if libcurl is not there.
  HttpClient(std::string server, const Options& options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  const std::string& server() const { return server_; }

  // Posts JSON. `token`: for the header Authorization; empty: without it.
  HttpAnswer post(const std::string& path, const std::string& json, const std::string& token = "");

 private:
  struct Handle;
  std::string server_;
  std::unique_ptr<Handle> handle_;
};

}  // namespace lockstep::launch
