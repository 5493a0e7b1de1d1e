// A run's dashboard, served by this process or by one beside a training run.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "lockstep/dash/http_server.h"

namespace lockstep::dash {

// Serves the dashboard of the run in `folder`, under way or ended, until SIGINT, SIGTERM or SIGHUP. `tell` gets the
// address once it listens. Throws as HttpServer.
void serve(const std::string& folder, const HttpServer::Options& options,
           const std::function<void(const std::string& url)>& tell);

// The same in a process of its own, which can't harm the run, and ends with this object or with its maker's thread.
class Beside {
 public:
  // Forks, and waits until it listens. Throws as HttpServer, IoError if the machine has no room for a process.
  Beside(const std::string& folder, const HttpServer::Options& options);
  ~Beside();
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  const std::string& url() const { return url_; }

 private:
  pid_t pid_ = -1;
  std::string url_;
};

// launch::OpenDashboard: a Beside at 127.0.0.1, whose address goes to standard error.
std::shared_ptr<void> open_beside(const std::string& folder, int port, bool quiet);

}  // namespace lockstep::dash
