#include "lockstep/datasets/image_source.h"

#include "lockstep/base/error.h"

namespace lockstep::datasets {

const image::ImageInfo& open_encoded(image::Decoder& decoder, const Encoded& encoded, const std::string& name,
                                     const image::DecodeOptions& options) {
  if (encoded.raw) return decoder.open_raw(encoded.bytes, *encoded.raw, name, options);
  return decoder.open(encoded.bytes, name, options);
}

EncodedPair ImageSource::read_pair(int64_t index, PairMemory& /*memory*/) const {
  throw BugError(name_of(index), ": an image without a mask is read with it");
}

Encoded ImageSource::read_mask(int64_t index, std::vector<uint8_t>& /*memory*/) const {
  throw BugError(name_of(index), ": the mask of an image without one is read");
}

void check_opaque(const image::ImageInfo& info, const std::string& name, int channels) {
  if (!info.alpha) return;
  throw DataError(name, ": the network has ", channels, channels == 1 ? " input channel" : " input channels",
                  ", and the image ", info.channels + 1, " with its transparency; save it without");
}

}  // namespace lockstep::datasets
