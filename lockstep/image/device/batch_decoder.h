// The pictures of a batch's rows, on the device that uses them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "lockstep/image/device/host_decoder.h"
#include "lockstep/image/device/jpeg_decoder.h"

namespace lockstep::image {

// How many pictures were decoded where.
struct DecodedCounts {
  int64_t on_device = 0;
  std::map<std::string, int64_t> on_host = {};  // by why: {"PNG": 10}

  int64_t host() const;
  DecodedCounts& operator+=(const DecodedCounts& other);
  std::string text() const;                           // "988 on the device, 12 on the host (10 PNG, 2 CMYK JPEG)"
  std::string lines() const;                          // for another process
  static DecodedCounts of(const std::string& lines);  // of lines()
};

// One thread.
class BatchDecoder {
 public:
  BatchDecoder(std::shared_ptr<JpegDecoder> decoder, c10::Device device);

  // Returns the pictures of `rows`, uint8 [n, row_bytes()] on the host, as uint8 [n, 3, height, width] on the device,
  // by way of its current stream. On a GPU `rows` are pinned and stay as they are until that is done. What the decoder
  // refuses, the host decodes, and the calling thread waits for its copy. Throws DataError that names a picture which
  // neither can decode, and what the decoder throws. Adds to `counts`.
  at::Tensor decode(const at::Tensor& rows, Size result, bool channels_last, DecodedCounts& counts);

  const JpegDecoder& decoder() const { return *decoder_; }

 private:
  at::Tensor empty(int64_t pictures, Size result, bool channels_last, c10::Device device) const;

  std::shared_ptr<JpegDecoder> decoder_;
  c10::Device device_;
  HostDecoder host_;
};

}  // namespace lockstep::image
