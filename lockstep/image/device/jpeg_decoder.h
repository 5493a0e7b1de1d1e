// Decodes JPEGs on a device, and crops, resizes and flips them there.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/image/device/picture_row.h"

namespace lockstep::image {

// A row of a batch, and the number of its result there.
struct PlannedJpeg {
  PictureRow picture;  // with a file that is to be decoded
  int64_t place = 0;
};

// One thread, and one stream of the device.
class JpegDecoder {
 public:
  virtual ~JpegDecoder() = default;

  // Queues on the device's current stream what writes each picture's result to images[place], uint8
  // [n, 3, height, width] on the device in either memory format. The pictures' memory stays as it is until that is
  // done. Returns the places of those that it can't decode, whose results are undefined. Throws IoError if memory is
  // short or the device fails.
  virtual std::vector<int64_t> decode(std::span<const PlannedJpeg> pictures, const at::Tensor& images) = 0;

  // What it is, for a run's header: "nvJPEG 13.3.2".
  virtual std::string text() const = 0;
  // The memory of the device that it holds now, beside the results.
  virtual int64_t device_bytes() const = 0;
};

}  // namespace lockstep::image

// The entry of the plug-in liblockstep_nvjpeg.so; the caller owns the decoder, of the GPU `gpu`. Throws ConfigError if
// nvJPEG's library is missing, with what to install, and IoError if it does not start.
extern "C" lockstep::image::JpegDecoder* lockstep_make_jpeg_decoder(int gpu);
