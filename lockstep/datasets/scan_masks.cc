#include "lockstep/datasets/scan_masks.h"

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/in_order.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decoder.h"
#include "lockstep/image/mask_value.h"

namespace lockstep::datasets {
namespace {

using Values = std::vector<uint32_t>;
constexpr size_t kMostNamed = 8;  // values in an error

std::string text_of(const std::vector<uint32_t>& values) {
  std::string text;
  for (const uint32_t value : values) text += cat(text.empty() ? "" : " ", value);
  return text;
}

// Writes all values but `last` for people: "0, 255"; of many the first few.
std::string others_in(const std::set<uint32_t>& values, uint32_t last) {
  std::vector<std::string> others;
  for (const uint32_t value : values) {
    if (value != last) others.push_back(image::text_of_mask_value(value));
  }
  return first_few(others, kMostNamed, std::identity());
}

// Decodes masks one after the other. One thread.
class Scanner {
 public:
  explicit Scanner(const ImageSource& source) : source_(source) {}

  Values operator()(int64_t number) {
    open_encoded(decoder_, source_.read_mask(number, bytes_), source_.mask_name_of(number));
    decoder_.decode_values(pixels_);
    return image::values_in(pixels_, decoder_.name());
  }

 private:
  const ImageSource& source_;
  image::Decoder decoder_;
  std::vector<uint8_t> bytes_;
  std::vector<uint32_t> pixels_;
};

// Throws ConfigError for masks that have more than `most` values. It names the first mask, by its place in the list,
// with which there are too many.
void throw_for_mask(const ImageSource& source, int asked, size_t most, int threads) {
  std::set<uint32_t> all;
  std::string first;
  in_order<Values>(
      source.size(), threads, [&] { return Scanner(source); },
      [&](int64_t index, Outcome<Values> found) {
        for (const uint32_t value : std::move(found).get()) {
          if (!all.insert(value).second || all.size() != most + 1) continue;
          first = cat(source.mask_name_of(index), " has ", image::text_of_mask_value(value), " beside ",
                      others_in(all, value));
        }
      });
  if (first.empty()) return;
  throw ConfigError("--classes ", asked, ": the masks have ", all.size(), " values: ", first,
                    "; mend that mask, or train with --classes ", all.size(), " or more, or without it");
}

}  // namespace

std::vector<uint32_t> scan_masks(const ImageSource& source, int threads) {
  std::set<uint32_t> all;
  in_order<Values>(
      source.size(), threads, [&] { return Scanner(source); },
      [&](int64_t index, Outcome<Values> found) {
        const Values values = std::move(found).get();
        all.insert(values.begin(), values.end());
        if (all.size() > image::kMostClasses) image::throw_too_many_values(source.mask_name_of(index));
      });
  return {all.begin(), all.end()};
}

image::LabelMap labels_of(const ImageSource& source, const OpenOptions& options, const Find& find) {
  const auto look = [&] {
    for (const Values& known : {source.mask_values(), options.mask_values}) {
      if (!known.empty()) return text_of(known);
    }
    return find("mask-values-1", [&] { return text_of(scan_masks(source, options.threads)); });
  };
  std::istringstream text(options.on_one_rank(look));
  std::vector<uint32_t> values;
  for (uint32_t value = 0; text >> value;) values.push_back(value);
  if (values.size() < 2) {
    throw DataError(source.text(), ": all masks have one value alone (",
                    image::text_of_mask_value(values.empty() ? 0 : values[0]),
                    "), so that there is nothing to tell apart; are these the masks?");
  }
  return image::LabelMap(std::move(values));
}

void check_classes(const ImageSource& source, const image::LabelMap& labels, const OpenOptions& options) {
  if (!options.classes) return;
  const auto most = static_cast<size_t>(std::max(2, *options.classes));
  if (labels.values().size() <= most) return;
  options.on_one_rank([&] {
    throw_for_mask(source, *options.classes, most, options.threads);
    return std::string();
  });
}

std::string text_of(const image::LabelMap& labels) {
  constexpr size_t kMost = 8;
  const auto& values = labels.values();
  std::string text = "masks: ";
  for (size_t i = 0; i < std::min(kMost, values.size()); ++i) {
    text += cat(i == 0 ? "" : ", ", image::text_of_mask_value(values[i]), " -> class ", i);
  }
  return values.size() > kMost ? cat(text, ", … (", values.size(), " classes)") : text;
}

}  // namespace lockstep::datasets
