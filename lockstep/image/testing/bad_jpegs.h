// JPEGs that are damaged, hostile or odd.
#pragma once

#include <algorithm>
#include <vector>

#include "lockstep/image/encode.h"
#include "lockstep/image/testing/bad_picture.h"
#include "lockstep/image/testing/odd_jpeg.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image::testing_support {

// A segment: a marker, and what follows its length.
inline FileBytes jpeg_segment(uint8_t marker, const FileBytes& body) {
  return FileBytes{0xff, marker} + big_endian(body.size() + 2, 2) + body;
}

// Where the first segment of this type begins.
inline size_t segment_at(const FileBytes& jpeg, uint8_t marker) {
  for (size_t at = 2; at + 3 < jpeg.size(); at += 2 + (size_t{jpeg[at + 2]} << 8 | jpeg[at + 3])) {
    if (jpeg[at + 1] == marker) return at;
  }
  throw std::runtime_error("no such segment");
}

// The file in which the size that its frame tells is another.
inline FileBytes with_jpeg_size(const FileBytes& jpeg, uint8_t frame, uint32_t width, uint32_t height) {
  return with(jpeg, segment_at(jpeg, frame) + 5, big_endian(height, 2) + big_endian(width, 2));
}

// A progressive JPEG of `rounds` refinements of each coefficient, each a scan of its own: 64 · (rounds + 1) scans.
inline FileBytes many_scans(int rounds) {
  std::vector<jpeg_scan_info> scans;
  const auto add = [&](int coefficient, int high, int low) {
    scans.push_back(
        {.comps_in_scan = 1, .component_index = {0}, .Ss = coefficient, .Se = coefficient, .Ah = high, .Al = low});
  };
  for (int round = rounds; round >= 0; --round) {
    for (int coefficient = 0; coefficient < 64; ++coefficient) add(coefficient, round == rounds ? 0 : round + 1, round);
  }
  return encode_odd_jpeg(picture({16, 16}, 1), {.name = "scans", .colours = JCS_GRAYSCALE, .scans = &scans});
}

// The last scan again and again, as a file that keeps a decoder busy for hours.
inline FileBytes with_last_scan_again(FileBytes jpeg, size_t times) {
  const FileBytes marker = {0xff, 0xda};
  const auto last = std::find_end(jpeg.begin(), jpeg.end(), marker.begin(), marker.end());
  const FileBytes scan(last, jpeg.end() - 2);
  return inserted(jpeg, jpeg.size() - 2, repeated(scan, times));
}

inline void add_scans(BadPictures& to) {
  to.push_back({"448 scans", many_scans(6), Outcome::kDecoded, ""});
  to.push_back({"576 scans", many_scans(8), Outcome::kRefused, "too many scans"});
  to.push_back({"80,000 scans", with_last_scan_again(many_scans(6), 80'000), Outcome::kRefused, ""});
  const FileBytes baseline = encode_jpeg(picture({16, 16}), {.interleaved = false});
  to.push_back({"80,000 baseline scans", with_last_scan_again(baseline, 80'000), Outcome::kRefused, "too many scans"});
  const FileBytes restarts = encode_jpeg(picture({40, 64}), {.restart_rows = 1});
  to.push_back({"no end of restarts", inserted(restarts, restarts.size() - 2, repeated({0xff, 0xd0}, 100'000)),
                Outcome::kEither, ""});
}

inline void add_jpeg_sizes(BadPictures& to) {
  constexpr uint8_t kBaseline = 0xc0, kProgressive = 0xc2;
  const FileBytes plain = encode_jpeg(picture({40, 30})),
                  progressive = encode_jpeg(picture({40, 30}), {.progressive = true});
  to.push_back(
      {"65500 x 65500", with_jpeg_size(plain, kBaseline, 65500, 65500), Outcome::kRefused, "more than 178956970"});
  to.push_back({"65500 x 65500 progressive", with_jpeg_size(progressive, kProgressive, 65500, 65500), Outcome::kRefused,
                "more than 178956970"});
  to.push_back({"13000 x 13000", with_jpeg_size(plain, kBaseline, 13000, 13000), Outcome::kRefused, "bytes can hold"});
  to.push_back({"13000 x 13000 progressive", with_jpeg_size(progressive, kProgressive, 13000, 13000), Outcome::kRefused,
                "bytes can hold"});
  to.push_back({"2000 x 2000", with_jpeg_size(plain, kBaseline, 2000, 2000), Outcome::kRefused, "a damaged JPEG"});
  to.push_back({"no width", with_jpeg_size(plain, kBaseline, 0, 30), Outcome::kRefused, ""});
  to.push_back({"no height", with_jpeg_size(plain, kBaseline, 40, 0), Outcome::kRefused, ""});
  to.push_back({"65535 rows", with_jpeg_size(plain, kBaseline, 40, 65535), Outcome::kRefused, ""});
}

inline void add_jpeg_segments(BadPictures& to) {
  constexpr uint8_t kBaseline = 0xc0, kLossless = 0xc3, kHuffman = 0xc4, kQuantizers = 0xdb, kScan = 0xda, kExif = 0xe1;
  const FileBytes plain = encode_jpeg(picture({40, 30})), turned = encode_jpeg(picture({40, 30}), {.orientation = 6});
  const size_t frame = segment_at(plain, kBaseline), scan = segment_at(plain, kScan), exif = segment_at(turned, kExif);
  const auto refused = [&](const char* name, const FileBytes& bytes, const char* why = "a damaged JPEG") {
    to.push_back({name, bytes, Outcome::kRefused, why});
  };
  const auto sound = [&](const char* name, const FileBytes& bytes) {
    to.push_back({name, bytes, Outcome::kDecoded, ""});
  };
  refused("lossless", with(plain, frame + 1, {kLossless}));
  refused("12 bits", with(plain, frame + 4, {12}));
  refused("no channels", with(plain, frame + 9, {0}));
  refused("255 channels", with(plain, frame + 9, {255}));
  refused("a channel 15 times as fine", with(plain, frame + 11, {0xff}));
  refused("a table that is not there", with(plain, frame + 12, {3}));
  refused("two frames", inserted(plain, frame,
                                 FileBytes(plain.begin() + static_cast<ptrdiff_t>(frame),
                                           plain.begin() + static_cast<ptrdiff_t>(frame) + 19)));
  refused("a frame alone", first_bytes(plain, scan) + FileBytes{0xff, 0xd9}, "");
  refused("a Huffman table of too many codes", inserted(plain, 2, jpeg_segment(kHuffman, FileBytes(40, 255))));
  sound("a segment of no length", inserted(plain, 2, {0xff, 0xe5, 0, 0}));
  refused("a quantizer cut short", inserted(plain, 2, jpeg_segment(kQuantizers, {0, 1, 2})));
  refused("a segment beyond the end", inserted(plain, 2, {0xff, 0xed, 0xff, 0xff}), "");
  refused("an end where a beginning is", FileBytes{0xff, 0xd8, 0xff, 0xd9});
  refused("markers alone", FileBytes{0xff, 0xd8} + repeated({0xff}, 100'000));
  sound("an Exif block of nothing", inserted(plain, 2, jpeg_segment(kExif, bytes_of(std::string_view("Exif\0\0", 6)))));
  sound("an Exif orientation of 9", with(turned, exif + 4 + 6 + 19, {9}));
  sound("an Exif folder in itself", with(turned, exif + 4 + 6 + 4, {0xff, 0xff, 0xff, 0xff}));
  sound("an Exif folder of 65535", with(turned, exif + 4 + 6 + 8, {0xff, 0xff}));
  sound("bytes before segments", inserted(plain, 2, repeated({0xff}, 1000)));
  sound("a page behind the end", plain + bytes_of("<html>\x1b[31m</html>"));
  sound("a second picture behind the end", plain + plain);
}

inline BadPictures bad_jpegs() {
  BadPictures all;
  const Pixels colours = picture({50, 37});
  add_damaged(all, "a baseline JPEG", encode_jpeg(colours, {.orientation = 6}), 10, 8);
  add_damaged(all, "a progressive JPEG", encode_jpeg(colours, {.progressive = true}), 10, 8);
  add_damaged(all, "a CMYK JPEG", encode_jpeg(colours, {.cmyk = true}), 4, 4);
  add_scans(all);
  add_jpeg_sizes(all);
  add_jpeg_segments(all);
  return all;
}

}  // namespace lockstep::image::testing_support
