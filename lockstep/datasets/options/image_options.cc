#include "lockstep/datasets/options/image_options.h"

namespace lockstep::datasets {

void ImageOptions::declare(config::OptionSet& options) {
  using enum config::Effect;
  options.word("augment", "random changes of training images (left out: standard for images of --data)", &augment,
               kIdentity);
  options.word("exif",
               "turn as EXIF says; masks by their size, always (both) or never (image) "
               "(left out: on)",
               &exif, kIdentity);
  options.flag("fast-decode", "scale JPEGs while decoding: less time, slightly other pixels", &fast_decode, kIdentity);
}

}  // namespace lockstep::datasets
