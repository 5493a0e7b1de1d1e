// A small HTTP server for one page, by libevent: GET and HEAD alone, no files, no threads.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace lockstep::dash {

struct HttpAnswer {
  int status = 200;
  std::string type = "text/html; charset=utf-8", body = {};
};

// One thread.
class HttpServer {
 public:
  struct Options {
    std::string host = "127.0.0.1";  // a name or an address of this machine
    int port = 0;                    // 0: kFirstPort, or the next one that is free
  };
  static constexpr int kFirstPort = 7007, kPorts = 100;

  // Listens, and from run() on answers with `answer`, which gets the path ("/content"; ""
  // if there is none), without a query. Requests for
  // another host than this one, to which a foreign page may have sent its visitor's browser, are refused, unless it
  // listens on all addresses. Throws ConfigError if it can't listen.
  HttpServer(const Options& options, std::function<HttpAnswer(const std::string& path)> answer);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string url() const;  // "http://127.0.0.1:7007/"

  // Answers until one of the signals SIGINT, SIGTERM and SIGHUP comes.
  void run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::dash
