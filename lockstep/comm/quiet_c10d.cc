#include "lockstep/comm/quiet_c10d.h"

#include <c10/util/Logging.h>

#include <mutex>

#include "lockstep/base/env.h"

namespace lockstep::comm {
namespace {

// The objects of all threads, and libtorch's level before the first.
std::mutex mutex;
int objects = 0;
int level_before = 0;

}  // namespace

QuietC10d::QuietC10d() {
  constexpr int kFatal = 3;
  const std::lock_guard lock(mutex);
  if (++objects > 1) return;
  level_before = FLAGS_caffe2_log_level;
  if (!env("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = kFatal;
}

QuietC10d::~QuietC10d() {
  const std::lock_guard lock(mutex);
  if (--objects == 0) FLAGS_caffe2_log_level = level_before;
}

}  // namespace lockstep::comm
