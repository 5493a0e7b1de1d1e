// The worst samples of an evaluation as one picture, and as lines of text.
#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/image/sheet.h"
#include "lockstep/predict/sample_scores.h"

namespace lockstep::predict {

// One thread.
class WorstSheet {
 public:
  // For `samples` of them. `masks`: each is shown three times, plain, under its true mask and under the predicted one;
  // else once, in a red frame where the class is wrong and a green one where it is right. `class_names` may be empty.
  WorstSheet(int samples, bool masks, std::vector<std::string> class_names);

  // Adds the next one: its image [C, H, W], its true class, or those of its pixels [H, W], and the network's scores
  // [classes] or [classes, H, W]; on any device. Throws ConfigError for an image that is none.
  void add(const RankedSample& sample, const std::string& name, const at::Tensor& image, const at::Tensor& target,
           const at::Tensor& scores);

  // "worst samples, row by row in sheet.png:" and a line for each.
  std::string text(const std::string& file) const;
  // [{"index": 3, "sample": "3.png", "score": 0.1, …}], classes with "true", "predicted" and its "probability".
  const nlohmann::ordered_json& json() const { return json_; }
  // Writes a PNG. Throws IoError that names the path.
  void write(const std::string& file) const;

 private:
  void add_class(const at::Tensor& image, int64_t is, const at::Tensor& scores, nlohmann::ordered_json& entry);
  void add_mask(const at::Tensor& image, const at::Tensor& mask, const at::Tensor& scores);

  bool masks_;
  std::vector<std::string> class_names_;
  image::Sheet sheet_;
  int drawn_ = 0;
  std::vector<std::string> lines_;
  nlohmann::ordered_json json_ = nlohmann::ordered_json::array();
};

}  // namespace lockstep::predict
