#include "lockstep/datasets/survey/contact_sheet.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/shown.h"
#include "lockstep/data/permutation.h"
#include "lockstep/data/read_batch.h"
#include "lockstep/datasets/image_setup.h"
#include "lockstep/datasets/whole_sample.h"
#include "lockstep/datasets/write_png.h"
#include "lockstep/image/class_colours.h"
#include "lockstep/image/resize.h"

namespace lockstep::datasets {
namespace {

using image::Pixels;
using image::Rect;
using image::Size;

constexpr int kCell = 160, kGap = 4, kBetween = 12;  // pixels: of an image's place, beside it, and between samples
constexpr int kAcross = 4;                           // samples a row
constexpr uint8_t kGround = 40;

// An image, and the classes of its pixels where it has a mask.
struct Picture {
  Pixels image, classes;
};

Size fitting(Size size) {
  const double scale = static_cast<double>(kCell) / std::max(size.width, size.height);
  const auto scaled = [scale](int side) { return std::clamp(static_cast<int>(side * scale + 0.5), 1, kCell); };
  return {scaled(size.width), scaled(size.height)};
}

// In colours, and so large that it fits into a cell.
Picture scaled(const Picture& from, image::Resizer& resizer) {
  const Size size = fitting(from.image.size());
  const Rect all = image::whole(from.image.size()).source;
  const auto geometry = image::resized(image::whole(from.image.size()), size).value();
  Picture to;
  resizer.resize(from.image, all, geometry, image::Filter::kBilinear, to.image);
  if (!from.classes.empty()) resizer.resize(from.classes, all, geometry, image::Filter::kNearest, to.classes);
  return to;
}

void draw(const Picture& picture, int left, int top, Pixels& sheet) {
  const Pixels& image = picture.image;
  left += (kCell - image.width()) / 2;
  top += (kCell - image.height()) / 2;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) {
      const uint8_t* const from = image.at(x, y);
      uint8_t* const to = sheet.at(left + x, top + y);
      const int number = picture.classes.empty() ? 0 : *picture.classes.at(x, y);
      for (size_t c = 0; c < 3; ++c) {
        const int level = image.channels() == 1 ? from[0] : from[c];
        const int over = number == 0 ? level : image::class_colour(number)[c];
        to[c] = static_cast<uint8_t>((level * 3 + over * 2) / 5);
      }
    }
  }
}

// What training sees of a sample: [C, H, W] bytes, and the classes [H, W] of a mask.
Picture augmented(const data::Dataset& data, int64_t index, uint64_t seed) {
  const data::Batch batch = data::read_batch(data, std::array{index}, 0, seed);
  const at::Tensor image = batch.data()[0].contiguous(), target = batch.target()[0].contiguous();
  const auto channels = static_cast<int>(image.size(0));
  const Size size{static_cast<int>(image.size(2)), static_cast<int>(image.size(1))};
  const int64_t plane = int64_t{size.width} * size.height;
  const auto* const bytes = image.const_data_ptr<uint8_t>();
  Picture picture;
  picture.image.reshape(size, channels);
  if (target.dim() == 2) picture.classes.reshape(size, 1);
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      const int64_t at = int64_t{y} * size.width + x;
      for (int c = 0; c < channels; ++c) picture.image.at(x, y)[c] = bytes[c * plane + at];
      if (target.dim() == 2) *picture.classes.at(x, y) = static_cast<uint8_t>(target.const_data_ptr<int64_t>()[at]);
    }
  }
  return picture;
}

// The sample as it is stored, with the numbers that its mask's values have among all.
Picture stored(WholeSample& sample, int64_t index, const std::vector<uint32_t>& values) {
  const image::Pipeline as_it_is;
  sample.open(index);
  sample.decode(as_it_is);
  const auto copy = [](const Pixels& from, const auto& value_of) {
    Pixels to;
    to.reshape(from.size(), from.channels());
    for (int y = 0; y < from.height(); ++y) {
      for (int x = 0; x < from.width(); ++x) {
        for (int c = 0; c < from.channels(); ++c) to.at(x, y)[c] = value_of(from.at(x, y)[c]);
      }
    }
    return to;
  };
  Picture picture;
  picture.image = copy(sample.image(), [](uint8_t level) { return level; });
  picture.classes = copy(sample.mask(), [&](uint8_t number) {
    const uint32_t value = sample.mask_values()[number];
    return static_cast<uint8_t>(std::lower_bound(values.begin(), values.end(), value) - values.begin());
  });
  return picture;
}

std::string label_of(const PartSurvey& part, const ImageSource& source, int64_t index) {
  const std::string name = shown(source.short_name_of(index));
  return part.class_names.empty()
             ? name
             : cat(name, ", ", shown(part.class_names[static_cast<size_t>(source.class_of(index))]));
}

}  // namespace

ContactSheet contact_sheet(const Survey& survey, const SurveyOptions& options) {
  const data::Splits opened = open_for_training(survey, options, at::kByte);
  const PartSurvey& part = survey.parts.front();
  const ImageSource& source = survey.stored.train();
  const std::vector<uint32_t> values = part.mask_values();

  const auto seed = static_cast<uint64_t>(options.seed);
  const auto count = std::min<int64_t>(kSheetSamples, std::ssize(part.sound));
  const auto rows = static_cast<int>((count + kAcross - 1) / kAcross);
  constexpr int kWide = 2 * kCell + kGap + kBetween, kHigh = kCell + kBetween;
  ContactSheet sheet;
  sheet.pixels.reshape({kAcross * kWide + kBetween, std::max(1, rows) * kHigh + kBetween}, 3);
  for (int y = 0; y < sheet.pixels.height(); ++y) {
    std::fill_n(sheet.pixels.row(y), 4 * sheet.pixels.width(), kGround);
  }
  const data::Permutation order(part.sound.size(), seed, 0);
  WholeSample whole(source, turned_by(options.images.exif));
  image::Resizer resizer;
  for (int i = 0; i < count; ++i) {
    const int64_t index = part.sound[order(static_cast<uint64_t>(i))];
    const int left = kBetween + i % kAcross * kWide, top = kBetween + i / kAcross * kHigh;
    draw(scaled(stored(whole, index, values), resizer), left, top, sheet.pixels);
    draw(scaled(augmented(*opened.train, index, seed), resizer), left + kCell + kGap, top, sheet.pixels);
    sheet.samples.push_back(label_of(part, source, index));
  }
  return sheet;
}

std::string text_of(const ContactSheet& sheet, const std::string& path) {
  std::string text = cat("  sheet        ", shown(path), ": each sample as it is stored, and augmented; row by row");
  for (size_t i = 0; i < sheet.samples.size(); ++i) {
    text += cat(i % kAcross == 0 ? "\n    " : "  |  ", sheet.samples[i]);
  }
  return text + '\n';
}

void write_sheet(const ContactSheet& sheet, const std::string& path) { write_png(path, sheet.pixels); }

}  // namespace lockstep::datasets
