#include "lockstep/datasets/survey/survey.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/in_order.h"
#include "lockstep/data/subset.h"
#include "lockstep/datasets/image_setup.h"
#include "lockstep/datasets/open_images.h"
#include "lockstep/datasets/open_pairs.h"
#include "lockstep/datasets/packed/verify.h"
#include "lockstep/datasets/whole_sample.h"
#include "lockstep/image/label_map.h"

namespace lockstep::datasets {
namespace {

struct StopAsked {};

// What is found out about a sample.
struct Facts {
  std::string format;   // also of a damaged one
  std::string damaged;  // the line that says why it can't be opened or decoded; all below is unknown then
  image::ImageInfo info;
  uint64_t bytes = 0;
  int64_t decode_ns = 0;
  std::map<uint32_t, uint64_t> mask_pixels;
};

// Looks at one sample after the other. One thread.
class Looker {
 public:
  Looker(const ImageSource& source, const SurveyOptions& options)
      : sample_(source, turned_by(options.images.exif)), decodes_(!options.quick) {}

  Facts operator()(int64_t index) {
    try {
      Facts facts = look_at(index);
      facts.format = format();
      return facts;
    } catch (const DataError& error) {
      return {.format = format(), .damaged = error.what(), .info = {}};
    }
  }

 private:
  Facts look_at(int64_t index) {
    sample_.open(index);
    Facts facts{.format = {}, .damaged = {}, .info = sample_.info(), .bytes = sample_.bytes()};
    if (!decodes_) return facts;
    sample_.decode(whole_);
    facts.decode_ns = sample_.decode_ns();
    const image::Pixels& mask = sample_.mask();
    std::vector<uint64_t> pixels(sample_.mask_values().size());
    for (int y = 0; y < mask.height(); ++y) {
      for (int x = 0; x < mask.width(); ++x) ++pixels[*mask.at(x, y)];
    }
    for (size_t i = 0; i < pixels.size(); ++i) facts.mask_pixels[sample_.mask_values()[i]] = pixels[i];
    return facts;
  }

  // By the stored bytes, for there may be no more.
  std::string format() const {
    const Encoded& stored = sample_.stored().image;
    const auto found = stored.raw ? image::Format::kRaw : image::format_of(stored.bytes);
    return found ? image::format_name(*found) : "unknown";
  }

  WholeSample sample_;
  image::Pipeline whole_;
  bool decodes_;
};

std::string colour_of(const image::ImageInfo& info) {
  if (info.palette || info.inks) return info.inks ? "CMYK" : "palette";
  const std::string bits = info.bits > 8 ? cat(info.bits, "-bit ") : "";
  return cat(bits, info.channels == 1 ? "grey" : "colour", info.alpha ? " with alpha" : "");
}

Spread spread_of(std::vector<int> numbers) {
  if (numbers.empty()) return {};
  std::sort(numbers.begin(), numbers.end());
  return {numbers.front(), numbers[numbers.size() / 2], numbers.back()};
}

// Adds up the facts of a part.
class PartLook {
 public:
  explicit PartLook(const StoredPart& part)
      : source_(*part.images),
        found_{.name = part.name,
               .text = source_.text(),
               .samples = source_.size(),
               .class_names = source_.class_names()} {
    found_.class_counts.resize(found_.class_names.size());
    for (int64_t i = 0; i < source_.size() && !found_.class_names.empty(); ++i) {
      ++found_.class_counts[static_cast<size_t>(source_.class_of(i))];
    }
  }

  void add(int64_t index, Outcome<Facts> outcome) {
    const Facts facts = std::move(outcome).get();
    ++found_.formats[facts.format];
    if (!facts.damaged.empty()) {
      found_.damaged.push_back(facts.damaged);
      return;
    }
    found_.sound.push_back(index);
    take(facts);
  }

  PartSurvey finish() {
    found_.width = spread_of(std::move(widths_));
    found_.height = spread_of(std::move(heights_));
    return std::move(found_);
  }

 private:
  void take(const Facts& facts) {
    const image::Size size = facts.info.upright();
    widths_.push_back(size.width);
    heights_.push_back(size.height);
    ++found_.colours[colour_of(facts.info)];
    found_.turned += facts.info.orientation != 1;
    found_.bytes += facts.bytes;
    found_.decoded += facts.decode_ns > 0;
    found_.decode_ns += facts.decode_ns;
    for (const auto& [value, pixels] : facts.mask_pixels) found_.mask_pixels[value] += pixels;
  }

  const ImageSource& source_;
  PartSurvey found_;
  std::vector<int> widths_, heights_;
};

class Surveyor {
 public:
  Surveyor(const SurveyOptions& options, const SurveyCallbacks& callbacks)
      : options_(options), callbacks_(callbacks), threads_(options.workers.value_or(usable_cores())) {
    survey_.path = options.data;
  }

  Survey look() {
    try {
      survey_.stored = open_stored(options_.data, {.on_problem = [this](const std::string& line) { add(line); }});
      for (const StoredPart& part : survey_.stored.parts) samples_ += part.images->size();
      for (const StoredPart& part : survey_.stored.parts) survey_.parts.push_back(look_at(part));
      const bool would_decode = survey_.has_masks();  // all masks, to find their classes
      if (survey_.problems.empty() && !(options_.quick && would_decode)) try_to_open();
    } catch (const DataError& error) {
      add(error.what());
    }
    for (const PartSurvey& part : survey_.parts) {
      for (const std::string& line : part.damaged) add(line);
    }
    return std::move(survey_);
  }

  Survey verify() {
    if (kind_of(options_.data) != Kind::kPacked) {
      throw ConfigError("--verify: ", options_.data, " is no packed data (manifest.json); leave it out");
    }
    const Verified verified = verify_packed(options_.data, threads_);
    for (const std::string& line : verified.problems) add(line);
    if (survey_.problems.empty()) compare_parts();
    survey_.verified =
        cat(verified.shards, verified.shards == 1 ? " shard, " : " shards, ", human_bytes(verified.bytes));
    return std::move(survey_);
  }

 private:
  void add(const std::string& line) {
    if (told_.insert(line).second) survey_.problems.push_back(line);
  }

  // Finds what sound shards may have wrong as parts of one data set: their classes, and which of them have masks.
  void compare_parts() {
    try {
      open_stored(options_.data);
    } catch (const DataError& error) {
      add(error.what());
    }
  }

  PartSurvey look_at(const StoredPart& part) {
    PartLook look(part);
    const ImageSource& source = *part.images;
    const auto make_worker = [&] { return Looker(source, options_); };
    in_order<Facts>(source.size(), threads_, make_worker, [&](int64_t index, Outcome<Facts> outcome) {
      if (callbacks_.stops()) throw StopAsked();
      look.add(index, std::move(outcome));
      callbacks_.on_progress(++done_, samples_);
    });
    return look.finish();
  }

  // Finds what only the data set as a whole can say.
  void try_to_open() {
    const data::Splits opened = open_for_training(survey_, options_, at::kFloat);
    const data::Completed run = data::complete(opened, {}, static_cast<uint64_t>(options_.seed));
    survey_.train = run.splits.train->description();
    if (run.splits.validation != nullptr) survey_.validation = run.splits.validation->description();
    if (run.splits.test != run.splits.validation) survey_.test = run.splits.test->description();
  }

  const SurveyOptions& options_;
  const SurveyCallbacks& callbacks_;
  int threads_;
  Survey survey_;
  std::set<std::string> told_;  // problems
  int64_t done_ = 0, samples_ = 0;
};

// The values of the masks to train on, so that these are not decoded once more. None where a mask can't be used:
// opening then names it.
std::vector<uint32_t> known_values(const PartSurvey& train) {
  const bool fine = train.damaged.empty() && train.mask_pixels.size() <= image::kMostClasses;
  return fine ? train.mask_values() : std::vector<uint32_t>{};
}

// What `train unet` is to be told of images with alpha: --channels, as the first one has it.
std::optional<int> channels_with_alpha(const ImageSource& images) {
  std::vector<uint8_t> bytes;
  image::Decoder decoder;
  const image::ImageInfo& info =
      open_encoded(decoder, images.read(images.first(), bytes), images.name_of(images.first()));
  return info.alpha ? std::optional(info.with_alpha()) : std::nullopt;
}

}  // namespace

std::vector<uint32_t> PartSurvey::mask_values() const {
  std::vector<uint32_t> values;
  for (const auto& [value, pixels] : mask_pixels) values.push_back(value);
  return values;
}

data::Splits open_for_training(const Survey& survey, const SurveyOptions& options, at::ScalarType dtype) {
  const Packed kind = survey.stored.kind;
  const bool masks = kind == Packed::kMasks;
  const OpenOptions open{.path = options.data,
                         .images = options.images,
                         .size = options.size.value_or(usual_size(kind)),
                         .dtype = dtype,
                         .threads = options.workers.value_or(usable_cores()),
                         .channels = masks ? channels_with_alpha(survey.stored.train()) : std::nullopt,
                         .mask_values = known_values(survey.parts.front())};
  return masks ? open_pairs(open) : open_images(open);
}

std::optional<Survey> survey(const SurveyOptions& options, const SurveyCallbacks& callbacks) {
  options.check();
  try {
    Surveyor surveyor(options, callbacks);
    return options.verify ? surveyor.verify() : surveyor.look();
  } catch (const StopAsked&) {
    return std::nullopt;
  }
}

}  // namespace lockstep::datasets
