#include "lockstep/datasets/survey/survey_text.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "lockstep/base/shown.h"
#include "lockstep/base/text.h"
#include "lockstep/image/mask_value.h"

namespace lockstep::datasets {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kNamed = 3;  // classes, and mask values, that a line names

const char* form_of(Kind kind) {
  switch (kind) {
    case Kind::kClassFolders:
      return "class folders";
    case Kind::kTrainAndVal:
      return "class folders in parts";
    case Kind::kPairs:
      return "images with masks";
    case Kind::kPacked:
      return "packed data";
    case Kind::kRecordIo:
      return "RecordIO";
    case Kind::kCifar10:
      return "CIFAR-10";
    case Kind::kCifar100:
      return "CIFAR-100";
    default:
      return "unknown";
  }
}

// A line of the report: "  sizes       width 200 to 4000".
std::string line(const std::string& label, const std::string& text) {
  return "  " + label + std::string(std::max<size_t>(1, 13 - std::min<size_t>(12, label.size())), ' ') + text + '\n';
}

std::string fixed(double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

// "812 JPEG, 3 PNG", the most first.
std::string counts_of(const std::map<std::string, int64_t>& counts) {
  std::vector<std::pair<int64_t, std::string>> all;
  for (const auto& [name, count] : counts) all.emplace_back(-count, name);
  std::sort(all.begin(), all.end());
  std::string text;
  for (const auto& [count, name] : all) text += cat(text.empty() ? "" : ", ", -count, " ", name);
  return text;
}

// "250: 1 image each", or "12; most: cats 812, dogs 799, eels 30; least: newts 3, …".
std::string classes_of(const PartSurvey& part) {
  std::vector<size_t> order(part.class_counts.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return part.class_counts[a] > part.class_counts[b]; });
  const int64_t most = part.class_counts[order.front()], least = part.class_counts[order.back()];
  if (most == least) return cat(order.size(), ": ", most, most == 1 ? " image each" : " images each");
  const auto named = [&](auto from, auto to) {
    std::string text;
    for (auto i = from; i != to; ++i) {
      text += cat(text.empty() ? "" : ", ", shown(part.class_names[*i]), " ", part.class_counts[*i]);
    }
    return text;
  };
  const auto count = static_cast<ptrdiff_t>(std::min(kNamed, order.size()));
  if (order.size() <= 2 * kNamed) return cat(order.size(), ": ", named(order.begin(), order.end()));
  return cat(order.size(), "; most: ", named(order.begin(), order.begin() + count),
             "; least: ", named(order.rbegin(), order.rbegin() + count));
}

std::string text_of(const Spread& spread) {
  if (spread.least == spread.most) return cat(spread.most);
  return cat(spread.least, " to ", spread.most, " (median ", spread.median, ")");
}

uint64_t all_pixels(const PartSurvey& part) {
  uint64_t all = 0;
  for (const auto& [value, pixels] : part.mask_pixels) all += pixels;
  return all;
}

double share(uint64_t pixels, uint64_t all) { return static_cast<double>(pixels) / static_cast<double>(all); }

// "0: 71.2 %, #ff0000: 28.8 %", in the order of the classes.
std::string masks_of(const PartSurvey& part) {
  constexpr size_t kMost = 16;
  const uint64_t all = all_pixels(part);
  std::string text;
  size_t told = 0;
  for (const auto& [value, pixels] : part.mask_pixels) {
    if (told++ == kMost) return cat(text, ", … (", part.mask_pixels.size(), " values)");
    text +=
        cat(told == 1 ? "" : ", ", image::text_of_mask_value(value), ": ", fixed(100 * share(pixels, all), 1), " %");
  }
  return text;
}

double decode_ms(const PartSurvey& part) {
  return part.decoded == 0 ? 0 : static_cast<double>(part.decode_ns) * 1e-6 / static_cast<double>(part.decoded);
}

std::string text_of(const PartSurvey& part) {
  std::string text = line(part.name.empty() ? "found" : part.name, cat(part.text, ", ", human_bytes(part.bytes)));
  if (!part.class_counts.empty()) text += line("classes", classes_of(part));
  if (part.width.most > 0) {
    text += line("pixels", cat("width ", text_of(part.width), ", height ", text_of(part.height)));
  }
  if (!part.formats.empty()) {
    text += line("formats", cat(counts_of(part.formats), part.colours.empty() ? "" : "; ", counts_of(part.colours),
                                part.turned == 0 ? "" : cat("; ", part.turned, " turned by EXIF")));
  }
  if (!part.mask_pixels.empty()) text += line("mask values", masks_of(part));
  if (part.decoded > 0) {
    const double ms = decode_ms(part);
    text += line("decoding", cat(fixed(ms, 2), " ms a sample: ", fixed(1000 / ms, 0), " a second, a thread"));
  }
  return text;
}

Json json_of(const Spread& spread) { return {{"min", spread.least}, {"median", spread.median}, {"max", spread.most}}; }

Json json_of(const PartSurvey& part) {
  Json classes = Json::object(), masks = Json::object();
  for (size_t i = 0; i < part.class_names.size(); ++i) classes[part.class_names[i]] = part.class_counts[i];
  const uint64_t all = all_pixels(part);
  for (const auto& [value, pixels] : part.mask_pixels) masks[image::text_of_mask_value(value)] = share(pixels, all);
  Json json{{"name", part.name},
            {"text", part.text},
            {"samples", part.samples},
            {"bytes", part.bytes},
            {"classes", classes},
            {"width", json_of(part.width)},
            {"height", json_of(part.height)},
            {"formats", part.formats},
            {"colours", part.colours},
            {"turned", part.turned},
            {"mask_values", masks},
            {"damaged", part.damaged}};
  if (part.decoded > 0) json["decode_ms"] = decode_ms(part);
  return json;
}

}  // namespace

std::string text_of(const Survey& survey) {
  std::string text = cat(shown(survey.path), survey.stored.parts.empty() ? "" : ": ",
                         survey.stored.parts.empty() ? "" : form_of(survey.stored.form), "\n");
  if (!survey.verified.empty()) text += line("compared", survey.verified);
  for (const PartSurvey& part : survey.parts) text += text_of(part);
  if (!survey.train.empty()) {
    text += line("trains on", survey.train);
    if (!survey.validation.empty()) text += line("validates on", survey.validation);
    if (!survey.test.empty()) text += line("tests on", survey.test);
  }
  const size_t problems = survey.problems.size();
  for (const std::string& problem : survey.problems) text += line("problem", problem);
  if (problems > 0) return text;
  if (!survey.verified.empty())
    return text + line("ready", "all parts open, and all is as checksums and record counts say");
  return text + line("ready", cat("lockstep train ", recipe_of(survey.stored.kind), " --data ", shown(survey.path)));
}

nlohmann::ordered_json json_of(const Survey& survey) {
  Json parts = Json::array();
  for (const PartSurvey& part : survey.parts) parts.push_back(json_of(part));
  Json json{{"path", survey.path}, {"trainable", survey.trainable()}, {"problems", survey.problems}};
  if (!survey.verified.empty()) {
    json["verified"] = survey.verified;
    return json;
  }
  json["form"] = form_of(survey.stored.form);
  json["recipe"] = recipe_of(survey.stored.kind);
  json["parts"] = std::move(parts);
  json["train"] = survey.train;
  json["validation"] = survey.validation;
  json["test"] = survey.test;
  return json;
}

}  // namespace lockstep::datasets
