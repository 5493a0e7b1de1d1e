#include "lockstep/amp/cast_functions.h"

#include <ATen/autocast_mode.h>

namespace lockstep::amp::internal {

bool casts_on(c10::DeviceType device) {
  return (device == c10::DeviceType::CPU || device == c10::DeviceType::CUDA) &&
         at::autocast::is_autocast_enabled(device);
}

}  // namespace lockstep::amp::internal
