// The decoder of JPEGs on a device.
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "lockstep/image/device/jpeg_decoder.h"

namespace lockstep::train {

// nvJPEG's, of a plug-in, for a GPU; the CPU decodes as it does everywhere. Throws ConfigError if the plug-in or
// nvJPEG's library is missing, with what to do.
std::shared_ptr<image::JpegDecoder> jpeg_decoder_of(c10::Device device);

}  // namespace lockstep::train
