#include "lockstep/datasets/image_source.h"

#include <algorithm>

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

void check_channels(const image::ImageInfo& info, const std::string& name, int channels) {
  const bool wants_alpha = image::has_alpha(channels);
  const int has = info.with_alpha();
  if (info.alpha == wants_alpha && (channels > 2 || !wants_alpha || info.channels == 1)) return;
  throw DataError(name, ": the network has ", channels, channels == 1 ? " input channel" : " input channels",
                  ", and the image ", has, info.alpha ? " with its transparency" : "",
                  !info.alpha   ? "; save it with transparency, or train without --channels"
                  : wants_alpha ? "; save it in grey, or train with --channels 4"
                                : cat("; save it without, or train with --channels ", std::max(has, channels + 1)));
}

}  // namespace lockstep::datasets
