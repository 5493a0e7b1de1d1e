// A picture of many pictures, for people: samples in rows, each of one or more pictures side by side.
#pragma once

#include <utility>

#include "lockstep/image/pixels.h"
#include "lockstep/image/resize.h"

namespace lockstep::image {

// One thread at a time.
class Sheet {
 public:
  static constexpr int kCell = 160, kGap = 4, kBetween = 12;  // pixels: of a picture's place, beside it, around samples

  // `samples` of `pictures` each, `across` samples a row.
  Sheet(int samples, int pictures, int across);

  // Draws an image of one or three channels, scaled so that it fits, in the middle of its place. Classes, of the
  // image's size and one channel, lie over it in their colours; empty: none.
  void draw(int sample, int picture, const Pixels& image, const Pixels& classes);

  // Draws a frame around all pictures of a sample.
  void frame(int sample, uint8_t red, uint8_t green, uint8_t blue);

  const Pixels& pixels() const { return pixels_; }  // three channels
  Pixels take() { return std::move(pixels_); }      // and ends the sheet

 private:
  int left_of(int sample) const { return kBetween + sample % across_ * wide_; }
  int top_of(int sample) const { return kBetween + sample / across_ * (kCell + kBetween); }

  int across_, wide_;
  Resizer resizer_;
  Pixels image_, classes_;  // scaled
  Pixels pixels_;
};

}  // namespace lockstep::image
