// npy files that are damaged, hostile or odd, and files of other kinds.
#pragma once

#include "lockstep/image/encode.h"
#include "lockstep/image/testing/bad_picture.h"
#include "lockstep/image/testing/encode_npy.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image::testing_support {

inline BadPictures bad_arrays() {
  BadPictures all;
  const FileBytes elements(48, 1);
  const auto refused = [&](const std::string& name, const FileBytes& bytes, const char* why = "") {
    all.push_back({name, bytes, Outcome::kRefused, why});
  };
  add_damaged(all, "an array", encode_npy("'|u1'", "(6, 8)", elements), 8, 6);
  for (const char* type :
       {"'|O'", "'<f4'", "'<f8'", "'<c16'", "'<U4'", "'|V1'", "'<M8[s]'", "'<u3'", "[('a', '|u1')]"}) {
    refused(cat("an array of ", type), encode_npy(type, "(6, 8)", elements));
  }
  refused("a pickle",
          encode_npy("'|O'", "(1, 1)",
                     bytes_of("\x80\x04\x95\x10"
                              "cos\nsystem\n(S'true'\ntR.")),
          "where whole numbers are expected");
  for (const char* shape :
       {"(16777216, 16777216)", "(4294967296, 4294967296)", "(99999999999999999999999, 2)", "(-6, -8)", "(0, 8)", "()",
        "(48,)", "(1, 1, 6, 8)", "(6, 8, 5)", "(6.0, 8)", "(6, 8", "[6, 8]", "6, 8"}) {
    refused(cat("a shape of ", shape), encode_npy("'|u1'", shape, elements));
  }
  refused("100,000 x 100,000", encode_npy("'|u1'", "(100000, 100000)", elements), "are more than 178956970");
  refused("more elements than it says", encode_npy("'|u1'", "(6, 7)", elements), "48 bytes of elements where 42");
  refused("fewer elements than it says", encode_npy("'<i8'", "(6, 8)", elements), "48 bytes of elements where 384");
  refused("a header of 64 KiB", with(encode_npy("'|u1'", "(6, 8)", elements), 8, {0xff, 0xff}),
          "its header is cut short");
  refused("a header of 4 GiB", with(encode_npy("'|u1'", "(6, 8)", elements, false, 2), 8, FileBytes(4, 0xff)),
          "its header is cut short");
  refused("control characters", encode_npy("'\x1b[31m\a'", "(6, 8)", elements), "\\x1b[31m");
  refused("a type of 30,000 letters", encode_npy("'" + std::string(30'000, 'x') + "'", "(6, 8)", elements),
          "an array of 'xxxx");
  refused("a type without an end", encode_npy("'" + std::string(30'000, '\a'), "(6, 8)", elements),
          "an array of '\\x07");
  refused("a header that is no dictionary", with(encode_npy("'|u1'", "(6, 8)", elements), 10, FileBytes(60, ' ')));
  return all;
}

// What else a folder of pictures may hold, under the name of a picture.
inline BadPictures files_of_other_kinds() {
  BadPictures all;
  const auto add = [&](const char* name, const FileBytes& bytes, const char* why) {
    all.push_back({name, bytes, Outcome::kRefused, why});
  };
  constexpr const char* kNone = "it is no image that is read here";
  add("nothing", {}, "the file is empty");
  add("one zero", FileBytes(1), kNone);
  add("a MiB of zeros", FileBytes(1 << 20), kNone);
  add("a MiB of 255", FileBytes(1 << 20, 255), kNone);
  add("a page", bytes_of("<!DOCTYPE html>\n<html><body>404 Not Found\x1b[2J</body></html>\n"), kNone);
  add("a text in UTF-16", bytes_of(std::string_view("\xff\xfeh\0i\0\n\0", 8)), kNone);
  add("a pointer of Git LFS", bytes_of("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n"),
      kNone);
  add("a BMP", bytes_of("BM") + FileBytes(60), kNone);
  add("a TIFF", bytes_of(std::string_view("II*\0", 4)) + FileBytes(60), kNone);
  add("a WebP", bytes_of(std::string_view("RIFF\x10\0\0\0WEBPVP8 ", 16)) + FileBytes(60), kNone);
  add("a HEIC",
      bytes_of(std::string_view("\0\0\0\x18"
                                "ftypheic",
                                12)) +
          FileBytes(60),
      kNone);
  add("a JPEG 2000", bytes_of(std::string_view("\0\0\0\x0cjP  \r\n\x87\n", 12)) + FileBytes(60), kNone);
  add("an archive", bytes_of("PK\x03\x04") + FileBytes(60), kNone);
  add("gzip data", bytes_of("\x1f\x8b\x08") + FileBytes(60), kNone);
  add("a program",
      bytes_of("\x7f"
               "ELF") +
          FileBytes(60),
      kNone);
  add("a drawing", bytes_of("<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"/>"), kNone);
  add("a JPEG behind a line", bytes_of("\r\n") + encode_jpeg(picture({20, 20})), kNone);
  add("a PNG that was sent as text", bytes_of("\x89PNG\n\x1a\n") + FileBytes(60), kNone);
  add("the first bytes of a JPEG", {0xff, 0xd8, 0xff}, "a damaged JPEG");
  add("the first bytes of a PNG", {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, "a damaged PNG");
  add("the first bytes of a GIF", bytes_of("GIF89a"), "a damaged GIF");
  add("the first bytes of an array", bytes_of("\x93NUMPY\x01"), "its header is cut short");
  return all;
}

}  // namespace lockstep::image::testing_support
