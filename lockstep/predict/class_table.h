// The likeliest classes of images, as a table.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::predict {

struct ImageClasses {
  std::string file;
  std::vector<std::pair<int64_t, double>> classes;  // with their probabilities, the likeliest first
};

// The `top` likeliest classes by the scores [classes] of an image, of any floating-point type; equal ones in the order
// of their numbers. Fewer where there are fewer. Throws DataError that names the file for scores that are no numbers.
ImageClasses likeliest(const std::string& file, const at::Tensor& scores, int64_t top);

// A class's name, or its number where there are no names.
std::string class_text(int64_t number, const std::vector<std::string>& names);

// "cats/1.jpg: cat 0.913, dog 0.061".
std::string to_text(const ImageClasses& image, const std::vector<std::string>& names);
// "file,class_1,probability_1,class_2,…" and a line for an image, quoted where need be (RFC 4180).
std::string csv_header(size_t classes);
std::string to_csv(const ImageClasses& image, const std::vector<std::string>& names);
// {"file":"cats/1.jpg","classes":[{"class":3,"name":"cat","probability":0.9131}]}, on a line of its own.
std::string to_json(const ImageClasses& image, const std::vector<std::string>& names);

}  // namespace lockstep::predict
