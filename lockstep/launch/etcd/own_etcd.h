// An etcd of a launcher's own, for nodes that meet at one of them as torchrun's c10d has it: Debian's etcd-server, with
// a folder of its own, which ends with the launcher. A process between them starts it anew, with what it held, where it
// ends before: who stops a whole service or job stops it, too, before the ranks have saved.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {

// One thread, the process's first: the server is killed where that ends.
class OwnEtcd {
 public:
  // Starts it, and returns when it answers at `host`, this machine. Returns nothing where somebody listens at that port
  // already, another launcher of this machine perhaps, or once `stop_asked`. Throws ConfigError where there is no such
  // program, IoError without a folder, and CommError where it does not start.
  static std::unique_ptr<OwnEtcd> start(const std::string& host, int port, const std::function<bool()>& stop_asked);
  ~OwnEtcd();
  OwnEtcd(const OwnEtcd&) = delete;
  OwnEtcd& operator=(const OwnEtcd&) = delete;

  // Returns once no node is there any more, or `stop_asked`. Nodes of a run that begins after epoch `last` are passed
  // over: they find an etcd of their own. `say` gets a line for people about nodes that are still there now and then.
  void serve_until_left(int last, const std::function<bool()>& stop_asked,
                        const std::function<void(const std::string&)>& say) const;

 private:
  OwnEtcd() = default;
  void make_folder();
  void begin();
  int keep_running() const;
  enum class Start { kAnswers, kPortTaken, kPeerPortTaken, kStopped };
  Start await_answer(const std::function<bool()>& stop_asked);
  bool ended();
  std::string last_words() const;
  std::string answered() const { return folder_ + "/answered"; }  // a file that is there once it has

  std::string endpoint_, listens_, folder_;
  int port_ = 0;
  Descriptor lock_;  // of the folder, for as long as this process lives
  pid_t pid_ = -1;   // of the process between
};

}  // namespace lockstep::launch
