// An image of 8-bit pixels in rows from the top.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace lockstep::image {

struct Size {
  int width = 0, height = 0;
  bool operator==(const Size&) const = default;
};

struct Rect {
  int x = 0, y = 0, width = 0, height = 0;
  Size size() const { return {width, height}; }
  bool operator==(const Rect&) const = default;
};

// Of images of 1 to 4 channels: whether the last one is alpha.
constexpr bool has_alpha(int channels) { return channels % 2 == 0; }
// The byte of a pixel that is a channel, of four bytes where there is more than one.
constexpr int byte_of(int channel, int channels) {
  return has_alpha(channels) && channel == channels - 1 ? 3 : channel;
}

// An image of one channel (grey levels, class numbers), a byte a pixel, or of more, four bytes a pixel: R, G, B and
// alpha. Of two channels R, G and B are the grey level, each of them; of three alpha says nothing. Rows begin at
// 64-byte marks and may be read 64 bytes past their end. The memory is kept for smaller images, unless it is more than
// 64 MiB and four times what they need. One thread at a time.
class Pixels {
 public:
  Pixels() = default;
  // Contents are undefined afterwards. Throws IoError if memory is short.
  void reshape(Size size, int channels);

  Size size() const { return size_; }
  int width() const { return size_.width; }
  int height() const { return size_.height; }
  int channels() const { return channels_; }
  // The bytes at a pixel's beginning that a change of its colours changes.
  int colours() const { return channels_ == 1 ? 1 : 3; }
  bool has_alpha() const { return image::has_alpha(channels_); }
  int byte_of(int channel) const { return image::byte_of(channel, channels_); }
  bool empty() const { return size_.width == 0 || size_.height == 0; }
  int step() const { return channels_ == 1 ? 1 : 4; }  // bytes a pixel
  ptrdiff_t stride() const { return stride_; }         // bytes a row
  size_t capacity() const { return bytes_; }           // bytes of memory
  uint8_t* row(int y) { return memory_.get() + y * stride_; }
  const uint8_t* row(int y) const { return memory_.get() + y * stride_; }
  uint8_t* at(int x, int y) { return row(y) + static_cast<ptrdiff_t>(x) * step(); }
  const uint8_t* at(int x, int y) const { return row(y) + static_cast<ptrdiff_t>(x) * step(); }

 private:
  struct Free {
    void operator()(uint8_t* memory) const;
  };
  std::unique_ptr<uint8_t[], Free> memory_;
  size_t bytes_ = 0;
  ptrdiff_t stride_ = 0;
  Size size_;
  int channels_ = 1;
};

}  // namespace lockstep::image
