#include "lockstep/data/concat.h"

#include <ATen/ops/equal.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/data/subset.h"

namespace lockstep::data {
namespace {

using Parts = std::vector<std::shared_ptr<const Dataset>>;

bool same_table(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.scalar_type() == b.scalar_type() && at::equal(a, b);
}

bool same(const Field& a, const Field& b) {
  return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.channels_last == b.channels_last &&
         a.encoded == b.encoded && same_table(a.table, b.table);
}

// The parts' texts, each once.
template <typename TextOf>
std::string joined(const Parts& parts, const char* between, const TextOf& text_of) {
  std::vector<std::string> texts;
  for (const auto& part : parts) {
    std::string text = text_of(*part);
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(std::move(text));
  }
  std::string all;
  for (const std::string& text : texts) all += cat(all.empty() ? "" : between, text);
  return all;
}

class Concat final : public Dataset {
 public:
  explicit Concat(Parts parts) : parts_(std::move(parts)) {
    for (const auto& part : parts_) ends_.push_back(size() + part->size());
  }

  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  std::vector<Field> fields() const override { return parts_[0]->fields(); }

  // The draw is of the number in this set, as a subset's.
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, ReadStats& stats) const override {
    const Place place = place_of(index);
    place.part.read(place.index, draw, rows, stats);
  }

  std::string fingerprint() const override {
    std::string text;
    for (const auto& part : parts_) text += cat(text.empty() ? "" : " + ", part->size(), " of ", part->fingerprint());
    return text;
  }
  std::string description() const override {
    std::string text;
    for (const auto& part : parts_) text += cat(text.empty() ? "" : " and ", part->description());
    return text;
  }
  std::string transforms() const override {
    return joined(parts_, " | ", [](const Dataset& part) { return part.transforms(); });
  }

  int64_t classes() const override {
    int64_t most = 0;
    for (const auto& part : parts_) most = std::max(most, part->classes());
    return most;
  }
  std::vector<std::string> class_names() const override { return parts_[0]->class_names(); }
  int64_t class_of(int64_t index) const override {
    const Place place = place_of(index);
    return place.part.class_of(place.index);
  }
  std::string name_of(int64_t index) const override {
    const Place place = place_of(index);
    return place.part.name_of(place.index);
  }
  std::string example() const override { return parts_[0]->example(); }

  std::shared_ptr<const Dataset> for_evaluation() const override {
    Parts plain;
    bool any = false;
    for (const auto& part : parts_) {
      plain.push_back(as_evaluated(part));
      any = any || plain.back() != part;
    }
    return any ? std::make_shared<Concat>(std::move(plain)) : nullptr;
  }

  void will_need(std::span<const int64_t> indices) const override {
    std::vector<std::vector<int64_t>> of_parts(parts_.size());
    for (const int64_t index : indices) of_parts[number_of(index)].push_back(place_of(index).index);
    for (size_t i = 0; i < parts_.size(); ++i) parts_[i]->will_need(of_parts[i]);
  }
  bool decodes() const override {
    return std::any_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->decodes(); });
  }

  // Files of two parts may have one name.
  std::vector<Listed> listing() const override {
    std::vector<Listed> all;
    for (size_t i = 0; i < parts_.size(); ++i) {
      for (Listed& file : parts_[i]->listing()) all.push_back({cat("part ", i, '/', file.name), file.bytes});
    }
    std::sort(all.begin(), all.end(), [](const Listed& a, const Listed& b) { return a.name < b.name; });
    return all;
  }

 private:
  struct Place {
    const Dataset& part;
    int64_t index;
  };

  size_t number_of(int64_t index) const {
    check_index(index, size());
    return static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  }
  Place place_of(int64_t index) const {
    const size_t number = number_of(index);
    return {*parts_[number], index - (number == 0 ? 0 : ends_[number - 1])};
  }

  Parts parts_;
  std::vector<int64_t> ends_;  // of the parts: the number after their last sample's
};

}  // namespace

std::shared_ptr<const Dataset> concat(std::vector<std::shared_ptr<const Dataset>> parts) {
  if (parts.empty()) throw ConfigError("data::concat: there are no parts");
  const std::vector<Field> wanted = parts[0]->fields();
  for (const auto& part : parts) {
    const std::vector<Field> fields = part->fields();
    if (!std::equal(fields.begin(), fields.end(), wanted.begin(), wanted.end(), same)) {
      throw ConfigError("data::concat: ", part->description(), " has other fields than ", parts[0]->description(),
                        "; their names, types, shapes and layouts are to be equal");
    }
    if (part->class_names() != parts[0]->class_names()) {
      throw ConfigError("data::concat: ", part->description(), " has classes of other names than ",
                        parts[0]->description(), "; data::relabelled() gives it the same");
    }
  }
  return std::make_shared<Concat>(std::move(parts));
}

}  // namespace lockstep::data
