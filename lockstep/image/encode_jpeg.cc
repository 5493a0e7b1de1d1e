#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/image/encode.h"
#include "lockstep/image/exif_block.h"
#include "lockstep/image/jpeg_errors.h"

namespace lockstep::image {
namespace {

// How many pixels share a chroma sample, across and down.
struct Factors {
  int across, down;
};
Factors factors_of(Subsampling subsampling) {
  constexpr std::array kFactors = {Factors{1, 1}, Factors{2, 1}, Factors{2, 2},
                                   Factors{1, 2}, Factors{4, 1}, Factors{4, 2}};
  return kFactors.at(static_cast<size_t>(subsampling));
}

constexpr std::array kSeparateScans = {jpeg_scan_info{1, {0}, 0, 63, 0, 0}, jpeg_scan_info{1, {1}, 0, 63, 0, 0},
                                       jpeg_scan_info{1, {2}, 0, 63, 0, 0}, jpeg_scan_info{1, {3}, 0, 63, 0, 0}};

// A vector that grows while libjpeg writes. (Libjpeg's own memory can't be freed safely after an error.)
struct Destination : jpeg_destination_mgr {
  Destination() : jpeg_destination_mgr{} {
    init_destination = [](j_compress_ptr jpeg) { grow(jpeg); };
    empty_output_buffer = [](j_compress_ptr jpeg) -> boolean {
      grow(jpeg);
      return TRUE;
    };
    term_destination = [](j_compress_ptr jpeg) {
      auto& self = *static_cast<Destination*>(jpeg->dest);
      self.bytes.resize(self.bytes.size() - self.free_in_buffer);
    };
  }

  // Doubles the room, of which all is taken.
  static void grow(j_compress_ptr jpeg) {
    auto& self = *static_cast<Destination*>(jpeg->dest);
    const size_t taken = self.bytes.size();
    if (!self.resize(std::max(size_t{1} << 16, 2 * taken))) {
      static_cast<JpegErrors*>(jpeg->err)->fail("no memory");
    }
    self.next_output_byte = self.bytes.data() + taken;
    self.free_in_buffer = self.bytes.size() - taken;
  }

  // No exception may pass libjpeg.
  bool resize(size_t size) noexcept {
    try {
      bytes.resize(size);
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }

  std::vector<uint8_t> bytes;
};

void set_up(jpeg_compress_struct& jpeg, const Pixels& pixels, const JpegOptions& options) {
  jpeg.image_width = static_cast<JDIMENSION>(pixels.width());
  jpeg.image_height = static_cast<JDIMENSION>(pixels.height());
  jpeg.input_components = pixels.step();
  jpeg.in_color_space = pixels.channels() == 1 ? JCS_GRAYSCALE : options.cmyk ? JCS_CMYK : JCS_EXT_RGBX;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, options.quality, TRUE);
  if (pixels.channels() == 3 && !options.cmyk) {
    const Factors factors = factors_of(options.subsampling);
    jpeg.comp_info[0].h_samp_factor = factors.across;
    jpeg.comp_info[0].v_samp_factor = factors.down;
  }
  if (options.progressive) jpeg_simple_progression(&jpeg);
  if (!options.interleaved) {
    jpeg.scan_info = kSeparateScans.data();
    jpeg.num_scans = jpeg.num_components;
  }
  jpeg.restart_in_rows = options.restart_rows;
}

void write_orientation(jpeg_compress_struct& jpeg, int orientation) {
  std::array<uint8_t, 6 + kExifBlockBytes> body{'E', 'x', 'i', 'f'};
  write_exif_block(orientation, body.data() + 6);
  jpeg_write_marker(&jpeg, JPEG_APP0 + 1, body.data(), static_cast<unsigned>(body.size()));
}

}  // namespace

std::vector<uint8_t> encode_jpeg(const Pixels& pixels, const JpegOptions& options) {
  JpegErrors errors;
  jpeg_compress_struct jpeg{};
  jpeg.err = &errors;
  Destination destination;
  Pixels inks;  // the complements of C, M and Y are R, G and B where there is no black
  if (options.cmyk && pixels.channels() == 3) {
    inks.reshape(pixels.size(), 3);
    for (int y = 0; y < pixels.height(); ++y) {
      std::memcpy(inks.row(y), pixels.row(y), 4 * static_cast<size_t>(pixels.width()));
      for (int x = 0; x < pixels.width(); ++x) inks.at(x, y)[3] = 255;
    }
  }
  const Pixels& from = inks.empty() ? pixels : inks;
  const bool done = errors.run([&] {
    jpeg_create_compress(&jpeg);
    jpeg.dest = &destination;
    set_up(jpeg, pixels, options);
    jpeg_start_compress(&jpeg, TRUE);
    if (options.orientation != 0) write_orientation(jpeg, options.orientation);
    for (int y = 0; y < from.height(); ++y) {
      JSAMPROW row = const_cast<JSAMPROW>(from.row(y));  // libjpeg does not write to it
      jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
  });
  jpeg_destroy_compress(&jpeg);
  if (!done) throw BugError("encoding a JPEG: ", errors.text);
  return std::move(destination.bytes);
}

}  // namespace lockstep::image
