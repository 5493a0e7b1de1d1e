#include "lockstep/datasets/drawn/draw_files.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/datasets/drawn/shape_masks.h"
#include "lockstep/datasets/drawn/textured_shapes.h"
#include "lockstep/datasets/files/write_file.h"
#include "lockstep/image/encode.h"
#include "lockstep/image/planes.h"

namespace lockstep::datasets {
namespace {

namespace fs = std::filesystem;

// By draw_textured_shape()'s numbers.
constexpr const char* kShapeClasses[kTexturedClasses] = {
    "disc_stripes",    "disc_checks",   "square_stripes", "square_checks", "triangle_stripes",
    "triangle_checks", "cross_stripes", "cross_checks",   "ring_stripes",  "ring_checks"};

uint8_t level_of(float value) { return static_cast<uint8_t>(std::lround(value * 255)); }

// [3, side, side], from 0 to 1.
image::Pixels pixels_of(const std::vector<float>& planes, int side) {
  return image::from_planes(planes.data(), {side, side}, 3, level_of);
}

image::Pixels pixels_of(const std::vector<int64_t>& classes, int side) {
  return image::from_planes(classes.data(), {side, side}, 1,
                            [](int64_t number) { return static_cast<uint8_t>(number); });
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
  Drawing(const DrawOptions& options, fs::path folder)
      : options_(options),
        folder_(std::move(folder)),
        plane_(static_cast<size_t>(options.size) * static_cast<size_t>(options.size)) {}

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
    const fs::path folder = folder_ / part / kShapeClasses[label];
    make_folder(folder);
    write_file(folder / name_of(index, "jpg"), image::encode_jpeg(pixels_of(planes, options_.size)));
  }

  void draw_mask(int64_t index) const {
    std::vector<float> planes(3 * plane_);
    std::vector<int64_t> classes(plane_);
    draw_shape_mask(seed(), 0, static_cast<uint64_t>(index), options_.size, planes, classes);
    make_folder(folder_ / "imgs");
    make_folder(folder_ / "masks");
    write_file(folder_ / "imgs" / name_of(index, "jpg"), image::encode_jpeg(pixels_of(planes, options_.size)));
    write_file(folder_ / "masks" / name_of(index, "png"), image::encode_png(pixels_of(classes, options_.size)));
  }

  const DrawOptions& options_;
  fs::path folder_;
  size_t plane_;
};

// OUT.drawing, which becomes OUT once it is whole; otherwise it goes with its owner.
class DrawingFolder {
 public:
  explicit DrawingFolder(const std::string& out) : out_(fs::absolute(out).lexically_normal()) {
    if (!out_.has_filename()) out_ = out_.parent_path();  // "cells/"
    drawing_ = out_.string() + ".drawing";
    std::error_code error;
    const fs::file_status there = fs::symlink_status(out_, error);
    // An empty folder goes before, and not a mount point, whose place no other can take.
    const bool was_empty = fs::is_directory(there) && rmdir(out_.c_str()) == 0;
    if (fs::exists(there) && !was_empty) {
      throw ConfigError("draw: ", out, " is there; name a folder that is not, or remove it");
    }
    if (fs::exists(fs::symlink_status(drawing_, error))) {
      throw ConfigError("draw: ", drawing_.string(), " is there, from a drawing that goes on or was killed; remove it");
    }
    make_folder(drawing_);
  }
  DrawingFolder(const DrawingFolder&) = delete;
  DrawingFolder& operator=(const DrawingFolder&) = delete;
  ~DrawingFolder() {
    std::error_code ignored;
    if (!drawing_.empty()) fs::remove_all(drawing_, ignored);
  }

  const fs::path& path() const { return drawing_; }
  void finish() {
    std::error_code error;
    fs::rename(drawing_, out_, error);
    const fs::path drawing = std::exchange(drawing_, {});
    if (error) {
      throw IoError(out_.string(), ": can't get its name: ", errno_text(error.value()), "; what was drawn is ",
                    drawing.string());
    }
  }

 private:
  fs::path out_, drawing_;
};

}  // namespace

int64_t draw_files(const DrawOptions& options, const std::function<void(int64_t done, int64_t samples)>& on_progress,
                   const std::function<bool()>& stops) {
  DrawingFolder folder(options.out);
  const Drawing drawing(options, folder.path());
  for (int64_t index = 0; index < drawing.samples(); ++index) {
    if (stops()) return index;
    drawing.draw(index);
    on_progress(index + 1, drawing.samples());
  }
  folder.finish();
  return drawing.samples();
}

}  // namespace lockstep::datasets
