// An etcd of a launcher's own, for nodes that meet at one of them as torchrun's c10d has it: Debian's etcd-server, with
// a folder of its own, which ends with the launcher.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "lockstep/base/error.h"

namespace lockstep::launch {

// One thread, the process's first: the server is killed where that ends.
class OwnEtcd {
 public:
  // Starts it, and returns when it answers at `host`, this machine. Returns nothing where somebody listens at that port
  // already: another launcher of this machine, or a server that is no etcd, which whoever asks it will see. Throws
  // ConfigError where there is no such program, and CommError where it does not start.
  static std::unique_ptr<OwnEtcd> start(const std::string& host, int port);
  ~OwnEtcd();
  OwnEtcd(const OwnEtcd&) = delete;
  OwnEtcd& operator=(const OwnEtcd&) = delete;

  // Returns once no node of the run is there any more, or `stop_asked`. `say` gets a line for people about nodes that
  // are still there every few seconds.
  void serve_until_left(const std::string& run, const std::function<bool()>& stop_asked,
                        const std::function<void(const std::string&)>& say) const;

 private:
  OwnEtcd() = default;
  void begin(const std::string& address, int port);
  bool await_answer();
  std::string last_words() const;

  std::string endpoint_, folder_;
  pid_t pid_ = -1;
};

}  // namespace lockstep::launch
