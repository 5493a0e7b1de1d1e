#include "lockstep/image/info.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep::image {
namespace {

using std::string_view_literals::operator""sv;

struct Signature {
  Format format;
  std::string_view bytes;
};
constexpr std::array kSignatures = {Signature{Format::kJpeg, "\xff\xd8\xff"sv},
                                    Signature{Format::kPng, "\x89PNG\r\n\x1a\n"sv}, Signature{Format::kGif, "GIF87a"sv},
                                    Signature{Format::kGif, "GIF89a"sv}, Signature{Format::kNpy, "\x93NUMPY"sv}};

constexpr double kFreeBytes = 16 << 20;  // without compression; a file of any size may have them

}  // namespace

Size ImageInfo::upright() const { return orientation < 5 ? stored : Size{stored.height, stored.width}; }

std::optional<Format> format_of(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 16));
  for (const Signature& signature : kSignatures) {
    if (text.starts_with(signature.bytes)) return signature.format;
  }
  return std::nullopt;
}

const char* format_name(Format format) {
  constexpr std::array kNames = {"JPEG", "PNG", "GIF", "npy", "raw"};
  return kNames.at(static_cast<size_t>(format));
}

void check_limits(const std::string& name, Size size, int bits, size_t file_bytes, const Limits& limits) {
  if (size.width < 1 || size.height < 1) {
    throw DataError(name, ": an image of ", size.width, " x ", size.height, " pixels has none; remove the file");
  }
  const int64_t pixels = int64_t{size.width} * size.height;
  const auto refuse = [&](const std::string& most) {
    throw DataError(name, ": ", size.width, " x ", size.height, " pixels are more than ", most,
                    "; remove the file, or store it smaller");
  };
  if (pixels > limits.pixels) refuse(cat(limits.pixels, ", the most that is read"));
  const double bytes = static_cast<double>(pixels) * bits / 8;
  if (bytes > kFreeBytes + static_cast<double>(limits.expansion) * static_cast<double>(file_bytes)) {
    refuse(cat("a file of ", file_bytes, " bytes can hold"));
  }
}

}  // namespace lockstep::image
