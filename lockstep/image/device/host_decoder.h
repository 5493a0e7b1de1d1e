// The CPU in place of a device: libjpeg decodes, and the device's arithmetic resizes. The bits are Pipeline's.
#pragma once

#include "lockstep/image/decoder.h"
#include "lockstep/image/device/jpeg_decoder.h"

namespace lockstep::image {

class HostDecoder final : public JpegDecoder {
 public:
  // `images` is on the CPU. Throws DataError that names a picture that is damaged.
  std::vector<int64_t> decode(std::span<const PlannedJpeg> pictures, const at::Tensor& images) override;
  std::string text() const override { return "libjpeg"; }
  int64_t device_bytes() const override { return 0; }

 private:
  void decode(const PictureRow& picture, const at::Tensor& image);

  Decoder decoder_;
  Pixels pixels_;
  std::vector<uint8_t> between_;
};

}  // namespace lockstep::image
