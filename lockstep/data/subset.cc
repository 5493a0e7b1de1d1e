#include "lockstep/data/subset.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/xxh3.h"
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
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, ReadStats& stats) const override {
    base_->read(of_base(index), draw, rows, stats);
  }

  std::string fingerprint() const override {
    Xxh3 of_indices;
    of_indices.add(std::span(indices_));
    return cat(base_->fingerprint(), ", part ", hex(of_indices.value()));
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

// The first sample of each class that has samples, but none to train on. Empty where classes are not known cheaply.
std::vector<int64_t> emptied_classes(const Dataset& data, const HoldOut& parts) {
  std::set<int64_t> trained;
  for (const int64_t index : parts.train) trained.insert(data.class_of(index));
  std::vector<int64_t> emptied;
  for (const int64_t index : parts.validation) {
    if (trained.insert(data.class_of(index)).second) emptied.push_back(index);
  }
  return emptied;
}

int64_t held_of(int64_t size, double percent) {
  return static_cast<int64_t>(std::floor(static_cast<double>(size) * percent / 100));
}

std::shared_ptr<const Dataset> as_evaluated(const std::shared_ptr<const Dataset>& data) {
  auto plain = data->for_evaluation();
  return plain == nullptr ? data : plain;
}

}  // namespace

HoldOut hold_out(int64_t size, double percent, uint64_t seed) {
  if (!(percent >= 0 && percent < 100)) {
    throw ConfigError("validation: ", percent, " percent are out of range; from 0 to below 100 are possible");
  }
  const int64_t held = held_of(size, percent);
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

Completed complete(const Splits& splits, std::optional<double> percent, uint64_t seed) {
  const auto& train = splits.train;
  Completed done{.splits = splits, .held_out = std::nullopt};
  HoldOut parts;
  if (percent) {
    parts = hold_out(train->size(), *percent, seed);
    if (const auto emptied = emptied_classes(*train, parts); !emptied.empty()) {
      throw ConfigError("--validation ", *percent, ": ", emptied.size(), " of the ", train->classes(),
                        " classes would have no sample left to train on (", train->name_of(emptied.front()),
                        " is of one); leave it out, or give samples of their own to validate on");
    }
  } else if (splits.test == nullptr && splits.validation == nullptr && splits.usual_validation > 0 &&
             held_of(train->size(), splits.usual_validation) > 0) {
    percent = splits.usual_validation;
    parts = hold_out(train->size(), *percent, seed);
    if (!emptied_classes(*train, parts).empty()) parts.validation.clear();
  }
  if (!parts.validation.empty()) {
    const auto part_of = [&](const std::shared_ptr<const Dataset>& whole, const std::vector<int64_t>& part) {
      return subset(whole, part, cat(part.size(), " of ", whole->description(), " (", *percent, " % held out)"));
    };
    done.held_out = percent;
    done.splits.validation = part_of(as_evaluated(train), parts.validation);
    done.splits.train = part_of(train, parts.train);
  } else if (splits.validation != nullptr) {
    done.splits.validation = as_evaluated(splits.validation);
  }
  if (done.splits.test == nullptr) done.splits.test = done.splits.validation;
  if (done.splits.test == nullptr) {
    std::vector<int64_t> all(static_cast<size_t>(train->size()));
    std::iota(all.begin(), all.end(), 0);
    const auto evaluated = as_evaluated(train);
    done.splits.test =
        subset(evaluated, std::move(all),
               cat("the training samples themselves, for there are no others: ", evaluated->description()));
  }
  done.splits.test = as_evaluated(done.splits.test);
  return done;
}

}  // namespace lockstep::data
