#include "lockstep/predict/worst_sheet.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/datasets/write_png.h"
#include "lockstep/nn/predicted_classes.h"
#include "lockstep/predict/class_table.h"
#include "lockstep/track/tensors/tensor_pixels.h"

namespace lockstep::predict {
namespace {

constexpr int kMasksAcross = 2, kClassesAcross = 8;  // samples a row

std::string number_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4f", value);
  return text.data();
}

}  // namespace

WorstSheet::WorstSheet(int samples, bool masks, std::vector<std::string> class_names)
    : masks_(masks),
      class_names_(std::move(class_names)),
      sheet_(samples, masks ? 3 : 1, std::clamp(samples, 1, masks ? kMasksAcross : kClassesAcross)) {}

void WorstSheet::add(const RankedSample& sample, const std::string& name, const at::Tensor& image,
                     const at::Tensor& target, const at::Tensor& scores) {
  if (image.dim() != 3) throw ConfigError("--worst: samples ", image.sizes(), " are no images; it can't draw them");
  nlohmann::ordered_json entry = {{"index", sample.index}, {"sample", shown(name)}, {"score", nullptr}};
  if (!std::isnan(sample.score)) entry["score"] = sample.score;
  std::string line = shown(name) + ": ";
  if (masks_) {
    add_mask(image, target, scores);
    line += cat("Dice ", number_text(sample.score));
  } else {
    add_class(image, target.item<int64_t>(), scores, entry);
    line += cat("is ", entry["true"].get<std::string>(), " (", number_text(sample.score), "), predicted ",
                entry["predicted"].get<std::string>(), " (", number_text(entry["probability"].get<double>()), ')');
  }
  lines_.push_back(std::move(line));
  json_.push_back(std::move(entry));
  ++drawn_;
}

void WorstSheet::add_class(const at::Tensor& image, int64_t is, const at::Tensor& scores,
                           nlohmann::ordered_json& entry) {
  const auto predicted = nn::predicted_classes(scores, 0).item<int64_t>();
  sheet_.draw(drawn_, 0, track::image_pixels(image), {});
  is == predicted ? sheet_.frame(drawn_, 80, 230, 80) : sheet_.frame(drawn_, 255, 64, 64);
  entry["true"] = shown(class_text(is, class_names_));
  entry["predicted"] = shown(class_text(predicted, class_names_));
  entry["probability"] = nn::class_probabilities(scores, 0)[predicted].item<double>();
}

void WorstSheet::add_mask(const at::Tensor& image, const at::Tensor& mask, const at::Tensor& scores) {
  const image::Pixels pixels = track::image_pixels(image);
  sheet_.draw(drawn_, 0, pixels, {});
  sheet_.draw(drawn_, 1, pixels, track::class_pixels(mask));
  sheet_.draw(drawn_, 2, pixels, track::class_pixels(nn::predicted_classes(scores, 0)));
}

std::string WorstSheet::text(const std::string& file) const {
  const int across = masks_ ? kMasksAcross : kClassesAcross;
  std::string text =
      cat("worst samples, the worst first, ", across, " a row in ", shown(file),
          masks_ ? ": image, true mask, predicted mask\n" : ": red frames are wrong, green ones right\n");
  for (const std::string& line : lines_) text += "  " + line + '\n';
  return text;
}

void WorstSheet::write(const std::string& file) const { datasets::write_png(file, sheet_.pixels()); }

}  // namespace lockstep::predict
