#include "lockstep/data/subset.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/data/fingerprint.h"
#include "lockstep/data/permutation.h"

namespace lockstep::data {
namespace {

class Subset final : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> base, std::vector<int64_t> indices, std::string description)
      : base_(std::move(base)), indices_(std::move(indices)), description_(std::move(description)) {}

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }

  std::vector<Field> fields() const override { return base_->fields(); }

  // The draw is of the number in this set, as the samples of any other set are numbered.
  void read(int64_t index, const Draw& draw, std::span<at::Tensor> rows, ReadStats& stats) const override {
    base_->read(of_base(index), draw, rows, stats);
  }

  std::string fingerprint() const override {
    Fingerprint of_indices;
    of_indices.add(std::span(indices_));
    return cat(base_->fingerprint(), ", part ", of_indices.hex());
  }

  std::string description() const override { return description_; }
  int64_t classes() const override { return base_->classes(); }
  int64_t class_of(int64_t index) const override { return base_->class_of(of_base(index)); }
  std::string name_of(int64_t index) const override { return base_->name_of(of_base(index)); }

  std::shared_ptr<const Dataset> for_evaluation() const override {
    auto plain = base_->for_evaluation();
    return plain == nullptr ? nullptr : std::make_shared<Subset>(std::move(plain), indices_, description_);
  }

  void will_need(std::span<const int64_t> indices) const override {
    std::vector<int64_t> all;
    all.reserve(indices.size());
    for (const int64_t index : indices) all.push_back(of_base(index));
    base_->will_need(all);
  }

  bool decodes() const override { return base_->decodes(); }
  std::vector<Listed> listing() const override { return base_->listing(); }

 private:
  int64_t of_base(int64_t index) const {
    check_index(index, size());
    return indices_[static_cast<size_t>(index)];
  }

  std::shared_ptr<const Dataset> base_;
  std::vector<int64_t> indices_;
  std::string description_;
};

}  // namespace

HoldOut hold_out(int64_t size, double percent, uint64_t seed) {
  if (!(percent >= 0 && percent < 100)) {
    throw ConfigError("validation: ", percent, " percent are out of range; from 0 to below 100 are possible");
  }
  const auto held = static_cast<int64_t>(std::floor(static_cast<double>(size) * percent / 100));
  if (percent > 0 && held == 0) {
    throw ConfigError("validation: ", percent, " percent of ", size, " samples are not even one; ask for more");
  }
  const Permutation order(static_cast<uint64_t>(size), seed, 0, Purpose::kSplit);
  HoldOut parts;
  for (int64_t position = 0; position < size; ++position) {
    auto& part = position < held ? parts.validation : parts.train;
    part.push_back(static_cast<int64_t>(order(static_cast<uint64_t>(position))));
  }
  std::sort(parts.train.begin(), parts.train.end());
  std::sort(parts.validation.begin(), parts.validation.end());
  return parts;
}

std::shared_ptr<const Dataset> subset(std::shared_ptr<const Dataset> base, std::vector<int64_t> indices,
                                      std::string description) {
  for (const int64_t index : indices) check_index(index, base->size());
  return std::make_shared<Subset>(std::move(base), std::move(indices), std::move(description));
}

Splits with_validation(const Splits& splits, double percent, uint64_t seed) {
  HoldOut parts = hold_out(splits.train->size(), percent, seed);
  if (parts.validation.empty()) return splits;
  const auto name = [&](const char* what, const std::vector<int64_t>& part) {
    return cat(what, " ", part.size(), " of ", splits.train->description(), " (", percent, " % held out)");
  };
  const std::string train = name("training on", parts.train);
  const std::string validation = name("validating on", parts.validation);
  return {.train = subset(splits.train, std::move(parts.train), train),
          .test = splits.test,
          .validation = subset(splits.train, std::move(parts.validation), validation)};
}

}  // namespace lockstep::data
