#include "lockstep/datasets/drawn/draw_files.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/datasets/drawn/shape_masks.h"
#include "lockstep/datasets/drawn/textured_shapes.h"
#include "lockstep/datasets/files/write_file.h"
#include "lockstep/image/encode.h"

namespace lockstep::datasets {
namespace {

namespace fs = std::filesystem;

// By draw_textured_shape()'s numbers.
constexpr const char* kShapeClasses[kTexturedClasses] = {
    "disc_stripes",    "disc_checks",   "square_stripes", "square_checks", "triangle_stripes",
    "triangle_checks", "cross_stripes", "cross_checks",   "ring_stripes",  "ring_checks"};

uint8_t level_of(float value) { return static_cast<uint8_t>(std::lround(std::clamp(value, 0.0F, 1.0F) * 255)); }

// [3, side, side], from 0 to 1.
image::Pixels pixels_of(const std::vector<float>& planes, int side) {
  image::Pixels pixels;
  pixels.reshape({side, side}, 3);
  const size_t plane = static_cast<size_t>(side) * static_cast<size_t>(side);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const size_t at = static_cast<size_t>(y) * static_cast<size_t>(side) + static_cast<size_t>(x);
      for (size_t c = 0; c < 3; ++c) pixels.at(x, y)[c] = level_of(planes[c * plane + at]);
    }
  }
  return pixels;
}

image::Pixels pixels_of(const std::vector<int64_t>& classes, int side) {
  image::Pixels pixels;
  pixels.reshape({side, side}, 1);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      *pixels.at(x, y) =
          static_cast<uint8_t>(classes[static_cast<size_t>(y) * static_cast<size_t>(side) + static_cast<size_t>(x)]);
    }
  }
  return pixels;
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw IoError(path.string(), ": can't make this folder: ", errno_text(error.value()));
}

std::string name_of(int64_t index, const char* ending) {
  char name[32];
  std::snprintf(name, sizeof name, "%05lld.%s", static_cast<long long>(index + 1), ending);
  return name;
}

class Drawing {
 public:
  explicit Drawing(const DrawOptions& options)
      : options_(options), plane_(static_cast<size_t>(options.size) * static_cast<size_t>(options.size)) {}

  int64_t samples() const { return options_.samples + validation(); }

  void draw(int64_t index) const {
    if (options_.kind == DrawnKind::kMasks) return draw_mask(index);
    const bool trains = index < options_.samples;
    draw_shape(trains ? "train" : "val", trains ? 0 : 1, trains ? index : index - options_.samples);
  }

 private:
  int64_t validation() const { return options_.kind == DrawnKind::kMasks ? 0 : (options_.samples + 9) / 10; }
  uint64_t seed() const { return static_cast<uint64_t>(options_.seed); }

  void draw_shape(const char* part, uint32_t split, int64_t index) const {
    std::vector<float> planes(3 * plane_);
    const int64_t label = draw_textured_shape(seed(), split, static_cast<uint64_t>(index), options_.size, planes);
    const fs::path folder = fs::path(options_.out) / part / kShapeClasses[label];
    make_folder(folder);
    write_file(folder / name_of(index, "jpg"), image::encode_jpeg(pixels_of(planes, options_.size)));
  }

  void draw_mask(int64_t index) const {
    std::vector<float> planes(3 * plane_);
    std::vector<int64_t> classes(plane_);
    draw_shape_mask(seed(), 0, static_cast<uint64_t>(index), options_.size, planes, classes);
    const fs::path out = options_.out;
    make_folder(out / "imgs");
    make_folder(out / "masks");
    write_file(out / "imgs" / name_of(index, "jpg"), image::encode_jpeg(pixels_of(planes, options_.size)));
    write_file(out / "masks" / name_of(index, "png"), image::encode_png(pixels_of(classes, options_.size)));
  }

  const DrawOptions& options_;
  size_t plane_;
};

}  // namespace

int64_t draw_files(const DrawOptions& options, const std::function<void(int64_t done, int64_t samples)>& on_progress,
                   const std::function<bool()>& stops) {
  std::error_code error;
  if (fs::exists(options.out, error)) {
    throw ConfigError("draw: ", options.out, " is there; name a folder that is not, or remove it");
  }
  const Drawing drawing(options);
  for (int64_t index = 0; index < drawing.samples(); ++index) {
    if (stops()) return index;
    drawing.draw(index);
    on_progress(index + 1, drawing.samples());
  }
  return drawing.samples();
}

}  // namespace lockstep::datasets
