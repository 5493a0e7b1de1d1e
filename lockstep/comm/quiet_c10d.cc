#include "lockstep/comm/quiet_c10d.h"

#include <c10/util/Logging.h>

#include "lockstep/base/env.h"

namespace lockstep::comm {

QuietC10d::QuietC10d() : level_(FLAGS_caffe2_log_level) {
  constexpr int kFatal = 3;
  if (!env("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = kFatal;
}

QuietC10d::~QuietC10d() { FLAGS_caffe2_log_level = level_; }

}  // namespace lockstep::comm
