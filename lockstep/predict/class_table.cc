#include "lockstep/predict/class_table.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"

namespace lockstep::predict {
namespace {

std::string number_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4f", value);
  return text.data();
}

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char each : cell) text += each == '"' ? std::string("\"\"") : std::string(1, each);
  return text + '"';
}

}  // namespace

ImageClasses likeliest(const std::string& file, const at::Tensor& scores, int64_t top) {
  const at::Tensor probabilities = scores.to(at::kDouble).softmax(0).contiguous();
  if (!probabilities.isfinite().all().item<bool>()) {
    throw DataError(shown(file),
                    ": the network's scores are no numbers; are its weights sound? lockstep inspect shows them");
  }
  ImageClasses image{file, {}};
  const double* const values = probabilities.const_data_ptr<double>();
  for (int64_t number = 0; number < probabilities.numel(); ++number) image.classes.emplace_back(number, values[number]);
  std::stable_sort(image.classes.begin(), image.classes.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  image.classes.resize(std::min(image.classes.size(), static_cast<size_t>(top)));
  return image;
}

std::string class_text(int64_t number, const std::vector<std::string>& names) {
  return names.empty() ? cat(number) : names.at(static_cast<size_t>(number));
}

std::string to_text(const ImageClasses& image, const std::vector<std::string>& names) {
  std::string line = shown(image.file) + ": ";
  for (size_t i = 0; i < image.classes.size(); ++i) {
    const auto& [number, probability] = image.classes[i];
    line += cat(i > 0 ? ", " : "", shown(class_text(number, names)), ' ', number_text(probability));
  }
  return line + '\n';
}

std::string csv_header(size_t classes) {
  std::string line = "file";
  for (size_t i = 1; i <= classes; ++i) line += cat(",class_", i, ",probability_", i);
  return line + '\n';
}

std::string to_csv(const ImageClasses& image, const std::vector<std::string>& names) {
  std::string line = quoted(image.file);
  for (const auto& [number, probability] : image.classes) {
    line += cat(',', quoted(class_text(number, names)), ',', number_text(probability));
  }
  return line + '\n';
}

std::string to_json(const ImageClasses& image, const std::vector<std::string>& names) {
  nlohmann::ordered_json classes = nlohmann::ordered_json::array();
  for (const auto& [number, probability] : image.classes) {
    nlohmann::ordered_json entry = {{"class", number}};
    if (!names.empty()) entry["name"] = class_text(number, names);
    entry["probability"] = probability;
    classes.push_back(std::move(entry));
  }
  const nlohmann::ordered_json line = {{"file", image.file}, {"classes", std::move(classes)}};
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace lockstep::predict
