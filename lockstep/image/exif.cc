#include "lockstep/image/exif.h"

#include <cstring>

namespace lockstep::image {
namespace {

// Whole numbers of a block in its byte order. Reading beyond the end gives 0.
class Block {
 public:
  explicit Block(std::span<const uint8_t> bytes) : bytes_(bytes) {
    if (bytes.size() < 8) return;
    little_ = bytes[0] == 'I' && bytes[1] == 'I';
    valid_ = (little_ || (bytes[0] == 'M' && bytes[1] == 'M')) && number(2, 2) == 42;
  }
  bool valid() const { return valid_; }
  uint32_t number(size_t at, size_t width) const {
    if (at > bytes_.size() || bytes_.size() - at < width) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < width; ++i) value = value << 8 | bytes_[at + (little_ ? width - 1 - i : i)];
    return value;
  }

 private:
  std::span<const uint8_t> bytes_;
  bool little_ = false, valid_ = false;
};

constexpr uint32_t kOrientation = 0x0112, kShort = 3, kLong = 4;
constexpr uint32_t kMostEntries = 1000;

}  // namespace

int exif_orientation(std::span<const uint8_t> bytes) {
  const Block block(bytes);
  if (!block.valid()) return 0;
  const size_t folder = block.number(4, 4);
  const uint32_t entries = block.number(folder, 2);
  if (entries > kMostEntries) return 0;
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = folder + 2 + size_t{12} * i;  // tag, type, count, value
    if (block.number(entry, 2) != kOrientation) continue;
    const uint32_t type = block.number(entry + 2, 2);
    const uint32_t value = type == kShort ? block.number(entry + 8, 2) : type == kLong ? block.number(entry + 8, 4) : 0;
    return value <= 8 ? static_cast<int>(value) : 0;
  }
  return 0;
}

// Segments are 0xff, a marker, and a length that counts itself. 0xff may be repeated before a marker. Other bytes
// between segments are passed over, as libjpeg does, and so are the markers that stand alone.
JpegSegments jpeg_segments(std::span<const uint8_t> jpeg) {
  constexpr uint8_t kApp1 = 0xe1, kScan = 0xda, kAlone = 0x01, kFirstRestart = 0xd0, kLastRestart = 0xd7;
  JpegSegments segments;
  size_t at = 2;
  while (at + 4 <= jpeg.size()) {
    const uint8_t marker = jpeg[at + 1];
    if (jpeg[at] != 0xff || marker == 0xff) {
      ++at;
      continue;
    }
    if (marker <= kAlone || (marker >= kFirstRestart && marker <= kLastRestart)) {
      at += 2;
      continue;
    }
    if (marker == kScan) break;
    const size_t length = size_t{jpeg[at + 2]} << 8 | jpeg[at + 3];
    const auto rest = jpeg.subspan(at + 4);
    if (length < 2 || length - 2 > rest.size()) break;
    const auto body = rest.first(length - 2);
    if (marker == kApp1 && segments.exif.empty() && body.size() > 6 && std::memcmp(body.data(), "Exif\0\0", 6) == 0) {
      segments.exif = body.subspan(6);
    }
    at += 2 + length;
  }
  segments.end = at;
  return segments;
}

}  // namespace lockstep::image
