#include "lockstep/image/jpeg.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/image/exif.h"
#include "lockstep/image/jpeg_errors.h"
#include "lockstep/image/jpeg_scan.h"

namespace lockstep::image {
namespace {

// Whether the end of the image is somewhere behind its segments. Data of a scan can't hold its marker, so that a file
// that was cut has none.
bool has_end(std::span<const uint8_t> bytes, size_t segments) {
  for (size_t at = bytes.size(); at-- > segments + 1;) {
    if (bytes[at] == 0xd9 && bytes[at - 1] == 0xff) return true;
  }
  return false;
}

// Adobe's programs store the complement of each ink. (Pillow's conversion, in its integers.)
void cmyk_to_rgb(uint8_t* pixels, int count) {
  for (uint8_t* pixel = pixels; pixel < pixels + 4 * ptrdiff_t{count}; pixel += 4) {
    const uint32_t white = pixel[3];
    for (int c = 0; c < 3; ++c) {
      const uint32_t product = (255u - pixel[c]) * white + 128;
      pixel[c] = static_cast<uint8_t>(white - ((product + (product >> 8)) >> 8));
    }
  }
}

unsigned unsigned_of(int value) { return static_cast<unsigned>(value); }

bool is_inks(J_COLOR_SPACE space) { return space == JCS_CMYK || space == JCS_YCCK; }

// Whether both channels of colour have one sample where brightness has 1, 2 or 4 by 1 or 2.
bool is_usual_sampling(const jpeg_decompress_struct& jpeg) {
  const jpeg_component_info* const all = jpeg.comp_info;
  const int across = all[0].h_samp_factor, down = all[0].v_samp_factor;
  const auto is_one = [](const jpeg_component_info& of) { return of.h_samp_factor == 1 && of.v_samp_factor == 1; };
  return is_one(all[1]) && is_one(all[2]) && (across == 1 || across == 2 || across == 4) && (down == 1 || down == 2);
}

// ImageInfo::unusual, of a header that has been read.
const char* unusual_of(const jpeg_decompress_struct& jpeg) {
  if (is_inks(jpeg.jpeg_color_space)) return "CMYK JPEG";
  if (jpeg.arith_code) return "arithmetic JPEG";
  if (jpeg.data_precision != 8) return "JPEG not of 8 bits";
  if (jpeg.jpeg_color_space == JCS_GRAYSCALE) return nullptr;
  if (jpeg.jpeg_color_space != JCS_YCbCr) return "RGB JPEG";
  return is_usual_sampling(jpeg) ? nullptr : "JPEG of unusual sampling";
}

}  // namespace

struct JpegReader::State {
  State() {
    jpeg.err = &errors;
    progress.progress_monitor = [](j_common_ptr common) {
      auto& self = *static_cast<State*>(common->client_data);
      const int64_t scans = self.jpeg.input_scan_number,
                    pixels = int64_t{self.jpeg.image_width} * self.jpeg.image_height;
      if (scans > self.limits.scans) self.errors.fail("it has too many scans");
      if (scans * pixels > self.limits.scanned) self.errors.fail("it has too many scans for its size");
    };
    create();
  }
  ~State() { jpeg_destroy_decompress(&jpeg); }
  State(const State&) = delete;

  void create() {
    if (!errors.run([&] { jpeg_create_decompress(&jpeg); })) throw IoError("libjpeg: ", errors.text);
    jpeg.client_data = this;
    jpeg.progress = &progress;
  }

  // Forgets the image before. Libjpeg would keep its tables for images that have none of their own, and their pixels
  // would depend on what the same thread has decoded.
  void renew() {
    jpeg_destroy_decompress(&jpeg);
    create();
  }

  void read_header() {
    renew();
    const bool is_read = errors.run([&] {
      jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
      jpeg_read_header(&jpeg, TRUE);
    });
    jpeg.output_scanline = 0;
    if (!is_read) fail();
  }

  [[noreturn]] void fail() {
    const unsigned row = jpeg.output_scanline;
    const bool memory = std::string_view(errors.text).find("emory") != std::string_view::npos;
    jpeg_abort_decompress(&jpeg);
    if (memory) throw IoError(name, ": ", errors.text, ": use fewer --workers");
    if (row == 0) throw DataError(name, ": a damaged JPEG (", errors.text, "); remove or replace the file");
    throw DataError(name, ": a damaged JPEG (", errors.text, " at row ", row, " of ", jpeg.image_height,
                    "); remove or replace the file");
  }

  void set_up(int channels) {
    jpeg.out_color_space = is_inks(jpeg.jpeg_color_space) ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_EXT_RGBX;
    jpeg.dct_method = JDCT_ISLOW;
    jpeg.do_fancy_upsampling = TRUE;
    jpeg.do_block_smoothing = FALSE;
  }

  // The eighths in which the image is decoded: the fewest with which `crop` is no smaller than `wanted`.
  unsigned scale_for(const Rect& crop, Size wanted) const {
    unsigned eighths = 8;
    while (fast && eighths > 1 && unsigned_of(crop.width) * (eighths / 2) >= unsigned_of(wanted.width) * 8 &&
           unsigned_of(crop.height) * (eighths / 2) >= unsigned_of(wanted.height) * 8) {
      eighths /= 2;
    }
    return eighths;
  }

  // Asks for the columns of `crop`, and some on each side: upsampling takes the first and the last column that are
  // decoded for the image's edges. Returns the first column that comes. Libjpeg begins at an MCU's edge.
  int choose_columns(const Rect& crop) {
    const int width = static_cast<int>(jpeg.output_width), margin = 4 * jpeg.max_h_samp_factor;
    const int first = std::max(0, crop.x - margin), last = std::min(width, crop.x + crop.width + margin);
    JDIMENSION x = unsigned_of(first), taken = unsigned_of(last - first);
    if (first > 0 || last < width) jpeg_crop_scanline(&jpeg, &x, &taken);
    if (!libjpeg_alone) {
      const JDIMENSION pixels = jpeg.scale_num * (jpeg.comps_in_scan == 1 ? 1 : unsigned_of(jpeg.max_h_samp_factor));
      scan.start(jpeg, x / pixels, (x + taken - 1) / pixels, decode_mcu);
    }
    return static_cast<int>(x);
  }

  static boolean decode_mcu(j_decompress_ptr jpeg, JBLOCKROW* blocks) {
    State& self = *static_cast<State*>(jpeg->client_data);
    if (self.scan.decode(blocks)) return TRUE;
    self.libjpeg_alone = true;
    self.errors.fail("it is not sound");
  }

  // Rows above are skipped from the top, where libjpeg does it exactly; rows below are never looked at.
  void read(const Rect& crop, Pixels& out) {
    if (crop.y > 0) jpeg_skip_scanlines(&jpeg, unsigned_of(crop.y));
    std::array<JSAMPROW, 16> rows;
    for (int y = 0; y < crop.height;) {
      const int count = std::min(static_cast<int>(rows.size()), crop.height - y);
      for (int i = 0; i < count; ++i) rows[static_cast<size_t>(i)] = out.row(y + i);
      const int read = static_cast<int>(jpeg_read_scanlines(&jpeg, rows.data(), unsigned_of(count)));
      if (read == 0) errors.fail("no rows come");
      y += read;
    }
  }

  // Decodes at least `crop`; `place` becomes where it is in `out`. False on an error of libjpeg, and where it has to
  // decode `libjpeg_alone`.
  bool try_decoding(const Rect& crop, Size wanted, int channels, Pixels& out, Rect& place) {
    const unsigned scale = scale_for(crop, wanted);
    const int eighths = static_cast<int>(scale);
    Rect scaled{crop.x * eighths / 8, crop.y * eighths / 8, 0, 0};
    scaled.width = (crop.x * eighths + crop.width * eighths + 7) / 8 - scaled.x;
    scaled.height = (crop.y * eighths + crop.height * eighths + 7) / 8 - scaled.y;
    int first = 0;
    const bool has_started = errors.run([&] {
      set_up(channels);
      jpeg.scale_num = scale;
      jpeg.scale_denom = 8;
      jpeg_start_decompress(&jpeg);
      first = choose_columns(scaled);
    });
    if (!has_started) return false;
    out.reshape({static_cast<int>(jpeg.output_width), scaled.height}, channels);
    if (!errors.run([&] { read(scaled, out); })) return false;
    if (jpeg.out_color_space == JCS_CMYK) {
      for (int y = 0; y < out.height(); ++y) cmyk_to_rgb(out.row(y), out.width());
    }
    jpeg_abort_decompress(&jpeg);
    place = {scaled.x - first, 0, scaled.width, scaled.height};
    return true;
  }

  JpegErrors errors;
  JpegScan scan;
  bool libjpeg_alone = false;  // it decodes Huffman codes too
  jpeg_progress_mgr progress{};
  jpeg_decompress_struct jpeg{};
  std::string name;
  std::span<const uint8_t> bytes;
  Limits limits;
  bool fast = false;
};

JpegReader::JpegReader() : state_(std::make_unique<State>()) {}
JpegReader::~JpegReader() = default;

ImageInfo JpegReader::open(const EncodedImage& image) {
  State& state = *state_;
  jpeg_decompress_struct& jpeg = state.jpeg;
  state.name = image.name;
  state.bytes = image.bytes;
  state.limits = image.options.limits;
  state.fast = image.options.fast;
  state.libjpeg_alone = false;
  state.read_header();
  const Size size{static_cast<int>(jpeg.image_width), static_cast<int>(jpeg.image_height)};
  check_limits(image.name, size, 8 * jpeg.num_components, image.bytes.size(), image.options.limits);
  if (jpeg.jpeg_color_space == JCS_UNKNOWN) {
    throw DataError(image.name, ": a JPEG of ", jpeg.num_components, " channels is neither grey nor of colours");
  }
  const JpegSegments segments = jpeg_segments(image.bytes);
  if (!has_end(image.bytes, segments.end)) {
    throw DataError(image.name, ": a damaged JPEG (it ends early, after ", image.bytes.size(),
                    " bytes); remove or replace the file");
  }
  ImageInfo info{.format = Format::kJpeg,
                 .stored = size,
                 .channels = jpeg.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3,
                 .inks = is_inks(jpeg.jpeg_color_space),
                 .unusual = unusual_of(jpeg)};
  if (image.options.exif) {
    const int orientation = exif_orientation(segments.exif);
    info.exif_orientation = orientation != 0;
    info.orientation = std::max(1, orientation);
  }
  return info;
}

Rect JpegReader::decode(const Rect& crop, Size wanted, int channels, Pixels& out) {
  State& state = *state_;
  Rect place;
  if (state.try_decoding(crop, wanted, channels, out, place)) return place;
  if (!state.libjpeg_alone) state.fail();
  state.read_header();
  if (!state.try_decoding(crop, wanted, channels, out, place)) state.fail();
  return place;
}

}  // namespace lockstep::image
