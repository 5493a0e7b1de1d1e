#include "lockstep/image/label_map.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/mask_value.h"

namespace lockstep::image {
namespace {

constexpr size_t kSmall = 256;  // values below it are looked up

// "0, 255", and no more than the first few.
std::string list(const std::vector<uint32_t>& values) { return first_few(values, 8, text_of_mask_value); }

}  // namespace

std::vector<uint32_t> values_in(std::span<const uint32_t> mask, const std::string& name) {
  std::set<uint32_t> values;
  uint32_t last = mask.front() + 1;
  for (const uint32_t value : mask) {
    if (value == last) continue;
    last = value;
    if (values.insert(value).second && values.size() > kMostClasses) throw_too_many_values(name);
  }
  return {values.begin(), values.end()};
}

void throw_too_many_values(const std::string& name) {
  throw DataError(name, ": with this mask there are more than ", kMostClasses,
                  " values, and each would be a class; masks that were stored as JPEG or resized smoothly have such "
                  "values: store them as PNG");
}

LabelMap::LabelMap(std::vector<uint32_t> values) : values_(std::move(values)), class_of_(kSmall, -1) {
  if (values_.empty()) throw DataError("masks without any value have no classes");
  if (values_.size() > kMostClasses) {
    throw DataError("masks of ", values_.size(), " values (", list(values_), "): there are at most ", kMostClasses,
                    " classes; masks that were stored as JPEG have such values, PNG keeps them apart");
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    if (i > 0 && values_[i] <= values_[i - 1]) throw DataError("the values of masks must ascend: ", list(values_));
    if (values_[i] < kSmall) class_of_[values_[i]] = static_cast<int16_t>(i);
  }
}

void LabelMap::map(std::span<const uint32_t> values, Size size, const std::string& name, Pixels& classes) const {
  classes.reshape(size, 1);
  const uint32_t* from = values.data();
  for (int y = 0; y < size.height; ++y) {
    uint8_t* to = classes.row(y);
    for (int x = 0; x < size.width; ++x, ++from) {
      int number = -1;
      if (*from < kSmall) {
        number = class_of_[*from];
      } else if (const auto found = std::lower_bound(values_.begin(), values_.end(), *from);
                 found != values_.end() && *found == *from) {
        number = static_cast<int>(found - values_.begin());
      }
      if (number < 0) {
        throw DataError(name, ": pixel (", x, ", ", y, ") has the value ", text_of_mask_value(*from),
                        ", and the classes' values are ", list(values_), "; correct the mask");
      }
      to[x] = static_cast<uint8_t>(number);
    }
  }
}

}  // namespace lockstep::image
