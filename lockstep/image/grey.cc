#include "lockstep/image/grey.h"

namespace lockstep::image {

void to_grey(const Pixels& colours, Pixels& grey) {
  grey.reshape(colours.size(), 1);
  for (int y = 0; y < colours.height(); ++y) {
    const uint8_t* from = colours.row(y);
    uint8_t* to = grey.row(y);
    for (int x = 0; x < colours.width(); ++x, from += 4) to[x] = grey_of(from);
  }
}

}  // namespace lockstep::image
