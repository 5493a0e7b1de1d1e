// The layout of images and of convolutions' weights.
#pragma once

#include <c10/core/MemoryFormat.h>

namespace lockstep::train {

inline at::MemoryFormat memory_format(bool channels_last) {
  return channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

}  // namespace lockstep::train
