// Decodes JPEGs by libjpeg alone, as a reference for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/image/jpeg_errors.h"
#include "lockstep/image/pixels.h"

namespace lockstep::image::testing_support {

// libjpeg, about to read a file's rows with all that JpegReader asks for.
struct PlainJpeg {
  explicit PlainJpeg(const std::vector<uint8_t>& bytes) {
    jpeg.err = &errors;
    has_started = errors.run([&] {
      jpeg_create_decompress(&jpeg);
      jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
      jpeg_read_header(&jpeg, TRUE);
      jpeg.out_color_space = JCS_EXT_RGBX;
      jpeg.dct_method = JDCT_ISLOW;
      jpeg.do_fancy_upsampling = TRUE;
      jpeg.do_block_smoothing = FALSE;
      jpeg_start_decompress(&jpeg);
    });
  }
  PlainJpeg(const PlainJpeg&) = delete;
  PlainJpeg& operator=(const PlainJpeg&) = delete;
  ~PlainJpeg() { jpeg_destroy_decompress(&jpeg); }

  // Reads all rows. False on an error, which errors.text tells.
  bool read(Pixels& out) {
    if (!has_started) return false;
    out.reshape({static_cast<int>(jpeg.output_width), static_cast<int>(jpeg.output_height)}, 3);
    return errors.run([&] {
      for (int y = 0; y < out.height(); ++y) {
        JSAMPROW row = out.row(y);
        jpeg_read_scanlines(&jpeg, &row, 1);
      }
    });
  }

  JpegErrors errors;
  jpeg_decompress_struct jpeg{};
  bool has_started = false;
};

}  // namespace lockstep::image::testing_support
