// A worker's view of a network whose weights parameter servers keep (parameter_server.h).
//
//   ServedParameters served(net->parameters(), {"node0:4000", "node1:4000"}, {.worker = 2});
//   for (served.pull(); …; served.pull()) {
//     loss_of(batch).backward();                    // a mean over this worker's samples
//     served.push(batch.size());
//   }
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/parallel/server/messages.h"
#include "lockstep/parallel/server/served_part.h"

namespace lockstep::parallel {

struct ServedOptions {
  int worker = 0;                              // its number: another one for each worker that is there
  std::chrono::milliseconds patience{60'000};  // with a server that is not there yet, or that says nothing
};

// Used by one thread.
class ServedParameters {
 public:
  // Connects to all servers, in the order of their numbers. Throws ConfigError where a server keeps other weights or
  // has a worker of this number, and CommError that names the server which does not come.
  ServedParameters(std::vector<at::Tensor> parameters, std::vector<std::string> servers,
                   const ServedOptions& options = {});
  ~ServedParameters();  // tells the servers that it leaves

  // Writes the weights that this worker's next gradient is to be of into the parameters, once they are there:
  // synchronous servers' after every worker's last push, asynchronous ones' at once, unless this worker is too far
  // ahead. Drops .grad. Returns the step's number. Throws CommError for a server that is gone.
  int64_t pull();
  // Sends .grad, a mean over so many samples, for the step of the last pull(). Of 0 samples it counts nothing, so that
  // a worker without some goes on with the others. `lr`: the rate of this step; NaN: as it is. Throws as pull(), and
  // ConfigError for a second push without a pull between.
  void push(int64_t samples, double lr = std::numeric_limits<double>::quiet_NaN());

  uint64_t bytes() const;  // sent and received

  // A call that has thrown CommError is this object's last: make it anew.

 private:
  struct Server {
    std::string address;
    ServedPart part;
    at::Tensor flat;
    std::unique_ptr<Connection> connection;
  };

  void connect(Server& server, const ServedOptions& options);
  void enter(Server& server);
  template <typename Call>
  void with(Server& server, const char* doing, const Call& call);

  std::vector<at::Tensor> parameters_;
  std::vector<Server> servers_;
  int worker_;
  std::string how_;  // the servers' options
  int64_t clock_ = -1;
  bool may_push_ = false;
  std::string broken_ = {};  // why a call has failed: from then on both ends may be at different messages
  std::chrono::milliseconds patience_;
};

}  // namespace lockstep::parallel
