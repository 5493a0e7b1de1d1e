#include "lockstep/predict/mask_output.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/datasets/files/file_bytes.h"
#include "lockstep/datasets/write_png.h"
#include "lockstep/image/decoder.h"
#include "lockstep/nn/predicted_classes.h"
#include "lockstep/predict/masks.h"

namespace lockstep::predict {
namespace {

namespace fs = std::filesystem;

constexpr const char *kMask = "_mask.png", *kOverlay = "_overlay.png";

// As it is seen: upright, whole.
image::Pixels whole_image(const std::string& file, bool turned) {
  std::vector<uint8_t> memory;
  image::Decoder decoder;
  const image::Size size =
      decoder.open(datasets::read_whole(file, memory), shown(file), {.channels = 3, .exif = turned}).upright();
  image::Pixels pixels;
  decoder.decode({0, 0, size.width, size.height}, size, pixels);
  return pixels;
}

// "class 1 12.3 %"
std::string share_text(const image::Pixels& classes, int64_t count) {
  std::vector<int64_t> pixels(static_cast<size_t>(nn::classes_of_outputs(count)));
  for (int y = 0; y < classes.height(); ++y) {
    for (int x = 0; x < classes.width(); ++x) ++pixels[*classes.at(x, y)];
  }
  std::string text;
  const double all = static_cast<double>(classes.width()) * classes.height();
  for (size_t number = 1; number < pixels.size(); ++number) {
    std::array<char, 64> share{};
    std::snprintf(share.data(), share.size(), "class %zu %.1f %%", number,
                  100.0 * static_cast<double>(pixels[number]) / all);
    text += cat(text.empty() ? "" : ", ", share.data());
  }
  return text;
}

}  // namespace

MaskOutput::MaskOutput(std::string folder, std::vector<std::string> names, bool turned)
    : folder_(std::move(folder)), names_(std::move(names)), turned_(turned) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw IoError(folder_, ": ", errno_text(error.value()));
  for (size_t number = 0; number < names_.size(); ++number) {
    if (!fs::exists(path(number, kMask), error) || fs::exists(path(number, kOverlay), error)) continue;
    throw ConfigError("--output ", folder_, ": ", shown(path(number, kMask)),
                      " is there already, and no prediction's, for it has no overlay; choose another folder");
  }
}

std::string MaskOutput::add(size_t number, const std::string& image, const at::Tensor& scores) const {
  if (!scores.isfinite().all().item<bool>()) {
    throw DataError(shown(image), ": the network's scores are no numbers; are its weights sound? ",
                    "lockstep inspect shows them");
  }
  const image::Pixels pixels = whole_image(image, turned_);
  const image::Pixels classes = classes_of(scores, pixels.size());
  datasets::write_png(path(number, kMask), to_grey(classes, scores.size(0)));
  datasets::write_png(path(number, kOverlay), overlay(pixels, classes));
  return cat(shown(image), ": ", shown(path(number, kMask)), ", ", share_text(classes, scores.size(0)), '\n');
}

}  // namespace lockstep::predict
