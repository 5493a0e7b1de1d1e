#include "lockstep/data/subset.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/data/permutation.h"

namespace lockstep::data {
namespace {

class Subset final : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> base, std::vector<int64_t> indices, std::string description)
      : base_(std::move(base)), indices_(std::move(indices)), description_(std::move(description)) {}

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }

  Batch batch(std::span<const int64_t> indices, uint32_t epoch) const override {
    check_indices(indices, size());
    std::vector<int64_t> of_base;
    of_base.reserve(indices.size());
    for (const int64_t index : indices) of_base.push_back(indices_[static_cast<size_t>(index)]);
    return base_->batch(of_base, epoch);
  }

  std::vector<int64_t> sample_shape() const override { return base_->sample_shape(); }
  int64_t classes() const override { return base_->classes(); }
  std::string description() const override { return description_; }

 private:
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
  check_indices(indices, base->size());
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
