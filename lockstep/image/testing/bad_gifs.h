// GIFs that are damaged, hostile or odd.
#pragma once

#include "lockstep/image/testing/bad_picture.h"
#include "lockstep/image/testing/encode_gif.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image::testing_support {

inline FileBytes little_endian(uint32_t value) {
  return {static_cast<uint8_t>(value), static_cast<uint8_t>(value >> 8)};
}

// A screen with a palette of black and white.
inline FileBytes gif_screen(uint32_t width, uint32_t height) {
  return bytes_of("GIF89a") + little_endian(width) + little_endian(height) +
         FileBytes{0x80, 0, 0, 0, 0, 0, 255, 255, 255};
}

struct GifFrame {
  uint32_t left = 0, top = 0, width = 8, height = 8;
  uint8_t flags = 0;      // 0x40: interlaced
  uint8_t code_bits = 2;  // LZW's
};

// `data` is LZW's codes, which are put into blocks of 255 bytes.
inline FileBytes gif_frame(const GifFrame& frame, const FileBytes& data) {
  FileBytes bytes = FileBytes{0x2c} + little_endian(frame.left) + little_endian(frame.top) +
                    little_endian(frame.width) + little_endian(frame.height) + FileBytes{frame.flags, frame.code_bits};
  for (size_t at = 0; at < data.size(); at += 255) {
    const size_t count = std::min<size_t>(255, data.size() - at);
    bytes.push_back(static_cast<uint8_t>(count));
    bytes.insert(bytes.end(), data.begin() + static_cast<ptrdiff_t>(at),
                 data.begin() + static_cast<ptrdiff_t>(at + count));
  }
  bytes.push_back(0);
  return bytes;
}

inline void add_lzw(BadPictures& to) {
  const FileBytes screen = gif_screen(8, 8), codes(200, 0x44);
  for (const int bits : {0, 1, 9, 11, 12, 13, 31, 255}) {
    const Outcome outcome = bits > 0 && bits < 12 ? Outcome::kEither : Outcome::kRefused;
    to.push_back({cat("LZW of ", bits, " bits"), screen + gif_frame({.code_bits = static_cast<uint8_t>(bits)}, codes),
                  outcome, ""});
  }
  const auto refused = [&](const char* name, const FileBytes& data) {
    to.push_back({name, screen + gif_frame({}, data), Outcome::kRefused, "a damaged GIF"});
  };
  refused("LZW without codes", {});
  refused("LZW of codes that do not exist yet", FileBytes(200, 0xff));
  refused("LZW that ends at once", FileBytes(200, 0x6d));           // the code 5 ends
  refused("LZW of clear codes alone", FileBytes(1'000'000, 0x24));  // the code 4 clears
}

inline void add_gif_frames(BadPictures& to) {
  const FileBytes sound = encode_gif(picture({33, 21}, 1)), codes(200, 0x44);
  const auto refused = [&](const char* name, const FileBytes& bytes, const char* why) {
    to.push_back({name, bytes, Outcome::kRefused, why});
  };
  refused("65535 x 65535", gif_screen(65535, 65535) + gif_frame({}, codes), "65535 x 65535 pixels are more than");
  refused("65535 x 2000", gif_screen(65535, 2000) + gif_frame({}, codes), "bytes can hold");
  refused("2000 x 2000", gif_screen(2000, 2000) + gif_frame({.width = 2000, .height = 2000}, codes), "a damaged GIF");
  refused("2000 x 2000 interlaced",
          gif_screen(2000, 2000) + gif_frame({.width = 2000, .height = 2000, .flags = 0x40}, codes), "a damaged GIF");
  refused("no pixels", gif_screen(0, 0) + gif_frame({}, codes), "");
  refused("a frame beyond the screen", gif_screen(8, 8) + gif_frame({.left = 1}, codes), "not within the image");
  refused("a frame far beyond the screen", gif_screen(8, 8) + gif_frame({.left = 65535, .top = 65535}, codes),
          "not within");
  refused("a frame of no width", gif_screen(8, 8) + gif_frame({.width = 0}, codes), "");
  refused("no frame", gif_screen(8, 8) + FileBytes{0x3b}, "it has no image");
  refused("an unknown block", gif_screen(8, 8) + FileBytes{0x77}, "");
  refused("extensions alone", gif_screen(8, 8) + repeated({0x21, 0xfe, 1, 'x', 0}, 100'000), "");
  refused("an extension without an end", gif_screen(8, 8) + FileBytes{0x21, 0xfe} + repeated(FileBytes(256, 255), 4000),
          "");
  to.push_back({"1000 frames", encode_gif(picture({33, 21}, 1), {.frames = 1000}), Outcome::kDecoded, ""});
  to.push_back({"frames without an end", first_bytes(sound, sound.size() - 1), Outcome::kDecoded, ""});
  to.push_back({"a page behind the end", sound + bytes_of("<html></html>"), Outcome::kDecoded, ""});
}

inline BadPictures bad_gifs() {
  BadPictures all;
  add_damaged(all, "a GIF", encode_gif(picture({33, 21}, 1)), 10, 8);
  add_damaged(all, "an interlaced GIF", encode_gif(picture({33, 21}, 1), {.interlaced = true}), 6, 6);
  add_lzw(all);
  add_gif_frames(all);
  return all;
}

}  // namespace lockstep::image::testing_support
