#include "lockstep/data/subset.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/data/random_split.h"
#include "lockstep/data/wrapped.h"

namespace lockstep::data {
namespace {

class Subset final : public Wrapped {
 public:
  Subset(std::shared_ptr<const Dataset> base, std::vector<int64_t> indices, std::string description)
      : Wrapped(std::move(base)), indices_(std::move(indices)), description_(std::move(description)) {}

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }

  // The draw is of the number in this set, as the samples of any other set are numbered.
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, ReadStats& stats) const override {
    base().read(of_base(index), draw, rows, stats);
  }

  std::string fingerprint() const override {
    Xxh3 of_indices;
    of_indices.add(std::span(indices_));
    return cat(base().fingerprint(), ", part ", hex(of_indices.value()));
  }

  std::string description() const override { return description_; }
  int64_t class_of(int64_t index) const override { return base().class_of(of_base(index)); }
  std::string name_of(int64_t index) const override { return base().name_of(of_base(index)); }

  void will_need(std::span<const int64_t> indices) const override {
    std::vector<int64_t> all;
    all.reserve(indices.size());
    for (const int64_t index : indices) all.push_back(of_base(index));
    base().will_need(all);
  }

 private:
  std::shared_ptr<const Dataset> around(std::shared_ptr<const Dataset> base) const override {
    return std::make_shared<Subset>(std::move(base), indices_, description_);
  }

  int64_t of_base(int64_t index) const {
    check_index(index, size());
    return indices_[static_cast<size_t>(index)];
  }

  std::vector<int64_t> indices_;
  std::string description_;
};

// The training samples in the place of a test part.
class AllOfThem final : public Wrapped {
 public:
  explicit AllOfThem(std::shared_ptr<const Dataset> base) : Wrapped(std::move(base)) {}
  std::string description() const override {
    return cat("the training samples themselves, for there are no others: ", base().description());
  }

 private:
  std::shared_ptr<const Dataset> around(std::shared_ptr<const Dataset> base) const override {
    return std::make_shared<AllOfThem>(std::move(base));
  }
};

[[noreturn]] void throw_none_held_out(const Dataset& data, double percent, const HoldOut& parts) {
  if (parts.kept == 0) {
    throw ConfigError("--validation ", percent, ": that share of ", data.size(),
                      " samples is not even one; ask for more");
  }
  throw ConfigError("--validation ", percent, ": each of the ", data.classes(), " classes is of one sample (",
                    data.name_of(0), "), so that classes would have no sample left to train on; leave it out, or give ",
                    "samples of their own to validate on");
}

// What the data set's usual percent holds out of it; nothing where it has parts of its own to judge by.
HoldOut hold_out_usual(const Splits& splits, uint64_t seed) {
  if (splits.test != nullptr || splits.validation != nullptr || !(splits.usual_validation > 0)) return {};
  return hold_out(*splits.train, splits.usual_validation, seed);
}

// Puts the parts of the training samples in place.
void part(Completed& done, const HoldOut& parts, const std::string& files) {
  const auto whole = done.splits.train;
  const std::string share = cat(done.usual ? "the usual " : "", done.held_out.percent.value_or(0), " %");
  const std::string how = cat(" (", files.empty() ? share : files, " held out",
                              parts.kept > 0 ? ", of the classes that can spare one)" : ")");
  const auto part_of = [&](const std::shared_ptr<const Dataset>& all, const std::vector<int64_t>& indices) {
    return subset(all, indices, cat(indices.size(), " of ", all->description(), how));
  };
  done.splits.validation = part_of(as_evaluated(whole), parts.validation);
  done.splits.train = part_of(whole, parts.train);
}

}  // namespace

std::shared_ptr<const Dataset> as_evaluated(const std::shared_ptr<const Dataset>& data) {
  auto plain = data->for_evaluation();
  return plain == nullptr ? data : plain;
}

HoldOut hold_out(const Dataset& data, double percent, uint64_t seed) {
  if (!(percent >= 0 && percent < 100)) {
    throw ConfigError("validation: ", percent, " percent are out of range; from 0 to below 100 are possible");
  }
  const int64_t size = data.size(), wanted = share_of(size, percent);
  std::unordered_map<int64_t, int64_t> left;  // to train on, of each class
  for (int64_t index = 0; index < size; ++index) ++left[data.class_of(index)];
  const Permutation order = split_order(size, seed);
  HoldOut parts;
  for (int64_t position = 0; position < size; ++position) {
    const auto index = static_cast<int64_t>(order(static_cast<uint64_t>(position)));
    const bool is_drawn = std::ssize(parts.validation) < wanted;
    const bool is_last = is_drawn && left[data.class_of(index)] == 1;
    parts.kept += is_last;
    if (is_drawn && !is_last) --left[data.class_of(index)];
    (is_drawn && !is_last ? parts.validation : parts.train).push_back(index);
  }
  std::sort(parts.train.begin(), parts.train.end());
  std::sort(parts.validation.begin(), parts.validation.end());
  return parts;
}

HoldOut hold_out(const Dataset& data, const std::string& files) {
  HoldOut parts;
  std::istringstream names(files);
  std::vector<std::pair<std::string, bool>> wanted;  // and whether some file has it
  for (std::string name; std::getline(names, name, ',');) wanted.emplace_back(name, false);
  for (int64_t index = 0; index < data.size(); ++index) {
    const std::string file = std::filesystem::path(data.name_of(index)).filename();
    bool is_held = false;
    for (auto& [name, found] : wanted) {
      if (fnmatch(name.c_str(), file.c_str(), 0) == 0) is_held = found = true;
    }
    (is_held ? parts.validation : parts.train).push_back(index);
  }
  for (const auto& [name, found] : wanted) {
    if (found) continue;
    throw ConfigError("--hold-out ", files, ": none of the ", data.size(), " samples' files is called ", name,
                      "; the first one is ", std::filesystem::path(data.name_of(0)).filename().string());
  }
  if (parts.train.empty()) throw ConfigError("--hold-out ", files, ": these are all samples; leave some to train on");
  return parts;
}

HoldOut hold_out(const Dataset& data, const HoldOutRequest& request, uint64_t seed) {
  return request.files.empty() ? hold_out(data, request.percent.value_or(0), seed) : hold_out(data, request.files);
}

std::shared_ptr<const Dataset> subset(std::shared_ptr<const Dataset> base, std::vector<int64_t> indices,
                                      std::string description) {
  for (const int64_t index : indices) check_index(index, base->size());
  return std::make_shared<Subset>(std::move(base), std::move(indices), std::move(description));
}

Completed complete(const Splits& splits, const HoldOutRequest& request, uint64_t seed) {
  const std::optional<double>& percent = request.percent;
  Completed done{.splits = splits};
  HoldOut parts;
  if (request.holds_some()) parts = hold_out(*splits.train, request, seed);
  if (!request.files.empty()) {
    done.held_out = {.files = request.files};
  } else if (percent.value_or(0) != 0) {
    if (parts.validation.empty()) throw_none_held_out(*splits.train, *percent, parts);
    done.held_out.percent = percent;
    done.usual = splits.test == nullptr && splits.validation == nullptr && *percent == splits.usual_validation;
  } else {
    const HoldOut usual = hold_out_usual(splits, seed);
    done.usual = !percent || usual.validation.empty();
    if (!percent && !usual.validation.empty()) {
      parts = usual;
      done.held_out.percent = splits.usual_validation;
    }
  }
  if (!parts.validation.empty()) {
    part(done, parts, request.files);
  } else if (splits.validation != nullptr) {
    done.splits.validation = as_evaluated(splits.validation);
  }
  auto& test = done.splits.test;
  if (test == nullptr) test = done.splits.validation;
  test = test == nullptr ? std::make_shared<AllOfThem>(as_evaluated(done.splits.train)) : as_evaluated(test);
  return done;
}

}  // namespace lockstep::data
