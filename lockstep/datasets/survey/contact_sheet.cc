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
#include "lockstep/image/planes.h"
#include "lockstep/image/sheet.h"

namespace lockstep::datasets {
namespace {

using image::Pixels;
using image::Size;

constexpr int kAcross = 4;  // samples a row

// An image, and the classes of its pixels where it has a mask.
struct Picture {
  Pixels image, classes;
};

// What training sees of a sample: [C, H, W] bytes, and the classes [H, W] of a mask.
Picture augmented(const data::Dataset& data, int64_t index, uint64_t seed) {
  const data::Batch batch = data::read_batch(data, std::array{index}, 0, seed);
  const at::Tensor image = batch.data()[0].contiguous(), target = batch.target()[0].contiguous();
  const auto channels = static_cast<int>(image.size(0));
  const Size size{static_cast<int>(image.size(2)), static_cast<int>(image.size(1))};
  Picture picture;
  picture.image =
      image::from_planes(image.const_data_ptr<uint8_t>(), size, channels, [](uint8_t level) { return level; });
  if (target.dim() == 2) {
    picture.classes = image::from_planes(target.const_data_ptr<int64_t>(), size, 1,
                                         [](int64_t number) { return static_cast<uint8_t>(number); });
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
        for (int c = 0; c < from.step(); ++c) to.at(x, y)[c] = value_of(from.at(x, y)[c]);
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
  image::Sheet drawn(static_cast<int>(count), /*pictures=*/2, kAcross);
  ContactSheet sheet;
  const data::Permutation order(part.sound.size(), seed, 0);
  WholeSample whole(source, turned_by(options.images.exif));
  for (int i = 0; i < count; ++i) {
    const int64_t index = part.sound[order(static_cast<uint64_t>(i))];
    const Picture before = stored(whole, index, values), after = augmented(*opened.train, index, seed);
    drawn.draw(i, 0, before.image, before.classes);
    drawn.draw(i, 1, after.image, after.classes);
    sheet.samples.push_back(label_of(part, source, index));
  }
  sheet.pixels = drawn.take();
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
