// Writes JPEGs for tests that encode_jpeg does not write, and that are read.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <ostream>
#include <stdexcept>
#include <vector>

#include "lockstep/image/jpeg_errors.h"
#include "lockstep/image/pixels.h"

namespace lockstep::image::testing_support {

struct OddJpeg {
  const char* name;
  J_COLOR_SPACE colours = JCS_YCbCr;               // of the file
  std::array<std::array<int, 2>, 3> factors = {};  // of the first channels, across and down; 0: libjpeg's
  bool arithmetic = false;
  const std::vector<jpeg_scan_info>* scans = nullptr;  // of a progressive file
  bool optimized = false;                              // with Huffman tables of its own
  int quality = 75;
};
inline std::ostream& operator<<(std::ostream& out, const OddJpeg& odd) { return out << odd.name; }

// The four bytes of a pixel are the inks of a file of inks.
inline std::vector<uint8_t> encode_odd_jpeg(const Pixels& pixels, const OddJpeg& odd) {
  JpegErrors errors;
  jpeg_compress_struct jpeg{};
  jpeg.err = &errors;
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  const bool done = errors.run([&] {
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &memory, &size);
    jpeg.image_width = static_cast<JDIMENSION>(pixels.width());
    jpeg.image_height = static_cast<JDIMENSION>(pixels.height());
    jpeg.input_components = pixels.step();
    const bool inks = odd.colours == JCS_CMYK || odd.colours == JCS_YCCK;
    jpeg.in_color_space = pixels.channels() == 1 ? JCS_GRAYSCALE : inks ? JCS_CMYK : JCS_EXT_RGBX;
    jpeg_set_defaults(&jpeg);
    jpeg_set_colorspace(&jpeg, odd.colours);
    jpeg_set_quality(&jpeg, odd.quality, TRUE);
    jpeg.optimize_coding = odd.optimized ? TRUE : FALSE;
    jpeg.arith_code = odd.arithmetic ? TRUE : FALSE;
    for (size_t i = 0; i < 3 && odd.factors[i][0] > 0; ++i) {
      jpeg.comp_info[i].h_samp_factor = odd.factors[i][0];
      jpeg.comp_info[i].v_samp_factor = odd.factors[i][1];
    }
    if (odd.scans != nullptr) {
      jpeg.scan_info = odd.scans->data();
      jpeg.num_scans = static_cast<int>(odd.scans->size());
    }
    jpeg_start_compress(&jpeg, TRUE);
    for (int y = 0; y < pixels.height(); ++y) {
      JSAMPROW row = const_cast<JSAMPROW>(pixels.row(y));
      jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
  });
  jpeg_destroy_compress(&jpeg);
  if (!done) throw std::runtime_error(errors.text);
  std::vector<uint8_t> bytes(memory, memory + size);
  std::free(memory);
  return bytes;
}

}  // namespace lockstep::image::testing_support
