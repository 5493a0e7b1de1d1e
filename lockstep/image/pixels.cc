#include "lockstep/image/pixels.h"

#include <cstdlib>

#include "lockstep/base/error.h"

namespace lockstep::image {
namespace {

constexpr size_t kMark = 64;        // bytes: a row's alignment, and what may be read past its end
constexpr size_t kMuch = 64 << 20;  // bytes: more than that is given back when a much smaller image comes

}  // namespace

void Pixels::Free::operator()(uint8_t* memory) const { std::free(memory); }

void Pixels::reshape(Size size, int channels) {
  channels_ = channels;
  size_ = size;
  const size_t stride = (static_cast<size_t>(size.width) * static_cast<size_t>(step()) + kMark - 1) / kMark * kMark;
  const size_t bytes = stride * static_cast<size_t>(size.height) + kMark;
  stride_ = static_cast<ptrdiff_t>(stride);
  if (bytes <= bytes_ && (bytes_ <= kMuch || bytes >= bytes_ / 4)) return;
  memory_.reset();
  bytes_ = 0;
  memory_.reset(static_cast<uint8_t*>(std::aligned_alloc(kMark, bytes)));
  if (!memory_) {
    size_ = {};
    throw IoError("no memory for an image of ", size.width, " x ", size.height, " pixels (", bytes >> 20,
                  " MiB): use fewer --workers, or smaller images");
  }
  bytes_ = bytes;
}

}  // namespace lockstep::image
