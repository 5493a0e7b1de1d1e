#include "lockstep/base/gpus.h"

#include <dlfcn.h>
#include <pthread.h>

#include <csignal>

namespace lockstep {
namespace {

// Threads that begin meanwhile have all signals blocked for ever: the driver's are none of those that may get the
// process's signals.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

int gpus_of_driver(const char* library) {
  const SignalsBlocked meanwhile;
  void* const driver = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (driver == nullptr) return 0;
  auto* const init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  auto* const count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  int gpus = 0;
  return init != nullptr && count != nullptr && init(0) == 0 && count(&gpus) == 0 ? gpus : 0;
}

int visible_gpus() { return gpus_of_driver("libcuda.so.1"); }

std::optional<int> own_gpu(int local_rank, int local_size, int visible) {
  if (visible >= local_size) return local_rank;
  if (visible == 1) return 0;
  return std::nullopt;
}

}  // namespace lockstep
