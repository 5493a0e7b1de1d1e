#include "lockstep/image/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/image/set_size.h"

namespace lockstep::image {
namespace {

// The file: 6 bytes of magic, a version of 2, the length of the header in 2 bytes or, from version 2 on, in 4, the
// header, which is a Python dictionary: {'descr': '|u1', 'fortran_order': False, 'shape': (64, 48), }, and the
// elements.
struct Header {
  std::string_view text;
  size_t end = 0;  // where the elements begin
};

std::optional<Header> header_of(std::span<const uint8_t> bytes) {
  if (bytes.size() < 12) return std::nullopt;
  const size_t begin = bytes[6] == 1 ? 10 : 12;
  size_t length = 0;
  for (size_t i = begin; i-- > 8;) length = length << 8 | bytes[i];
  if (length > bytes.size() - begin) return std::nullopt;
  return Header{{reinterpret_cast<const char*>(bytes.data()) + begin, length}, begin + length};
}

// What follows 'key':, without spaces before it; empty if the key is not there.
std::string_view value_of(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == text.npos) return {};
  text.remove_prefix(at + key.size());
  const size_t value = text.find_first_not_of(": ");
  return value == text.npos ? std::string_view{} : text.substr(value);
}

// The dimensions of "(64, 48)", at most four; none if they can't be read.
std::vector<int> shape_of(std::string_view text) {
  constexpr int kMost = 1 << 24;
  std::vector<int> shape;
  if (!text.starts_with('(')) return {};
  text.remove_prefix(1);
  while (!text.starts_with(')')) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 1 || value > kMost || shape.size() == 4) return {};
    shape.push_back(value);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    const size_t next = text.find_first_not_of(", ");
    if (next == text.npos) return {};
    text.remove_prefix(next);
  }
  return shape;
}

}  // namespace

ImageInfo NpyReader::open(const EncodedImage& image) {
  name_ = image.name;
  const auto header = header_of(image.bytes);
  if (!header) throw DataError(name_, ": a damaged npy file: its header is cut short; remove or replace the file");
  const std::string_view type = value_of(header->text, "'descr'"), order = value_of(header->text, "'fortran_order'");
  const std::vector<int> shape = shape_of(value_of(header->text, "'shape'"));
  if (type.size() < 5 || type[0] != '\'' || order.empty()) {
    throw DataError(name_, ": a damaged npy file: its header can't be read; remove or replace the file");
  }
  kind_ = type[2];
  item_ = static_cast<size_t>(type[3] - '0');
  big_endian_ = type[1] == '>';
  const bool is_size = item_ == 1 || item_ == 2 || item_ == 4 || item_ == 8;
  if ((kind_ != 'u' && kind_ != 'i' && kind_ != 'b') || !is_size || type[4] != '\'') {
    constexpr size_t kMostShown = 40;
    throw DataError(name_, ": an array of ", shown(type.substr(0, std::min(type.find('\'', 1), kMostShown) + 1)),
                    " where whole numbers are expected; save it as uint8: array.astype('uint8')");
  }
  const bool is_image = shape.size() == 2 || (shape.size() == 3 && shape[2] <= 4);
  if (!is_image) {
    throw DataError(name_, ": an array of ", shape.size(),
                    " dimensions that is no image; expected is (height, width) or (height, width, 3), with alpha "
                    "(height, width, 2) or (height, width, 4)");
  }
  size_ = {shape[1], shape[0]};
  channels_ = shape.size() == 2 ? 1 : shape[2];
  check_limits(name_, size_, channels_ * static_cast<int>(item_) * 8, image.bytes.size(), image.options.limits);
  const auto width = static_cast<size_t>(size_.width), height = static_cast<size_t>(size_.height);
  const auto channels = static_cast<size_t>(channels_);
  if (image.bytes.size() - header->end != width * height * channels * item_) {
    throw DataError(name_, ": a damaged npy file: ", image.bytes.size() - header->end, " bytes of elements where ",
                    width * height * channels * item_, " are to be; remove or replace the file");
  }
  data_ = image.bytes.data() + header->end;
  const bool columns_first = order.starts_with("True");
  step_y_ = item_ * (columns_first ? 1 : width * channels);
  step_x_ = item_ * (columns_first ? height : channels);
  step_channel_ = item_ * (columns_first ? height * width : 1);
  return {.format = Format::kNpy,
          .stored = size_,
          .channels = channels_ < 3 ? 1 : 3,
          .alpha = has_alpha(channels_),
          .bits = static_cast<int>(8 * item_)};
}

Rect NpyReader::decode(const Rect& crop, Size /*wanted*/, int channels, Pixels& out) {
  if (item_ != 1 || kind_ == 'i') {
    throw DataError(name_, ": an image of ", kind_ == 'i' ? "int" : "uint", 8 * item_,
                    " where uint8 is expected; save it as array.astype('uint8')");
  }
  out.reshape(crop.size(), channels);
  const int next = channels_ < 3 ? 0 : 1;
  const auto value = [&](int x, int y, int channel) {
    const uint8_t stored = *at(crop.x + x, crop.y + y, channel);
    return kind_ == 'b' ? static_cast<uint8_t>(stored == 0 ? 0 : 255) : stored;
  };
  for (int y = 0; y < crop.height; ++y) {
    uint8_t* to = out.row(y);
    for (int x = 0; x < crop.width; ++x, to += out.step()) {
      to[0] = value(x, y, 0);
      if (channels == 1) continue;
      to[1] = value(x, y, next);
      to[2] = value(x, y, 2 * next);
      to[3] = out.has_alpha() ? value(x, y, channels_ - 1) : 255;
    }
  }
  return {0, 0, crop.width, crop.height};
}

void NpyReader::decode_values(const ImageInfo& info, std::vector<uint32_t>& values) {
  if (channels_ > 1) return FormatReader::decode_values(info, values);
  set_size(values, static_cast<size_t>(size_.width) * static_cast<size_t>(size_.height));
  uint32_t* to = values.data();
  for (int y = 0; y < size_.height; ++y) {
    for (int x = 0; x < size_.width; ++x) {
      const uint8_t* const item = at(x, y, 0);
      uint64_t value = 0;
      for (size_t i = 0; i < item_; ++i) value = value << 8 | item[big_endian_ ? i : item_ - 1 - i];
      if (value > UINT32_MAX || (kind_ == 'i' && value >> (8 * item_ - 1) != 0)) {
        throw DataError(name_, ": pixel (", x, ", ", y, ") is negative or above 4294967295; no class has such a value");
      }
      *to++ = static_cast<uint32_t>(value);
    }
  }
}

}  // namespace lockstep::image
