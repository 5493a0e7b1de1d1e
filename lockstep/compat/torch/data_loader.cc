#include "lockstep/compat/torch/data_loader.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/random_split.h"
#include "lockstep/data/subset.h"

namespace lockstep::pytorch {
namespace {

// One epoch of a sampler.
class Listed final : public data::Order {
 public:
  explicit Listed(std::vector<int64_t> samples) : samples_(std::move(samples)) {}
  int64_t size() const override { return std::ssize(samples_); }
  data::Pick at(uint32_t /*epoch*/, int64_t position) const override {
    const int64_t index = samples_[static_cast<size_t>(position)];
    return {.index = index, .number = static_cast<uint64_t>(index)};
  }
  std::string text() const override { return "a sampler's"; }

 private:
  std::vector<int64_t> samples_;
};

void check(const DataLoaderOptions& options) {
  const int orders =
      (options.shuffle ? 1 : 0) + (options.sampler != nullptr ? 1 : 0) + (options.order != nullptr ? 1 : 0);
  if (orders > 1)
    throw ConfigError("DataLoader: more than one of shuffle, sampler and order; each is an order of samples");
  if (options.batch_size < 1) throw ConfigError("DataLoader: batch_size is ", options.batch_size, "; 1 is the least");
  if (options.prefetch_factor < 1) {
    throw ConfigError("DataLoader: prefetch_factor is ", options.prefetch_factor, "; 1 is the least");
  }
  if (options.num_workers < 0 || options.num_workers > data::kMostWorkers) {
    throw ConfigError("DataLoader: num_workers is ", options.num_workers, "; 0 to ", data::kMostWorkers,
                      " are possible");
  }
  if (options.timeout.count() < 0) {
    throw ConfigError("DataLoader: timeout is ", std::chrono::duration<double>(options.timeout).count(),
                      " s; give a time, or 0 for no limit");
  }
}

std::vector<int64_t> counts_of(int64_t size, const std::vector<double>& lengths) {
  constexpr double kMost = 0x1p53;  // whole numbers beyond are not told apart
  std::vector<int64_t> counts;
  for (const double length : lengths) {
    if (!(length >= 0 && length < kMost && length == std::floor(length))) {
      throw ConfigError("random_split: a length of ", length,
                        "; give numbers of samples, or fractions that add up to 1");
    }
    counts.push_back(static_cast<int64_t>(length));
  }
  const int64_t all = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  if (all == size) return counts;
  throw ConfigError("random_split: the lengths add up to ", all, ", and the data set has ", size, " samples");
}

// The numbers of samples by fractions, as PyTorch counts them: floor(size × fraction), and those that are left over go
// to the parts one by one. Nothing where they are no fractions.
std::optional<std::vector<int64_t>> counts_of_fractions(int64_t size, const std::vector<double>& fractions) {
  constexpr double kRounding = 1e-8;
  const double all = std::accumulate(fractions.begin(), fractions.end(), 0.0);
  if (!(std::abs(all - 1) < kRounding)) return std::nullopt;
  for (const double fraction : fractions) {
    if (!(fraction >= 0)) throw ConfigError("random_split: a fraction of ", fraction, "; from 0 to 1 are possible");
  }
  std::vector<int64_t> counts;
  for (const double fraction : fractions) {
    counts.push_back(static_cast<int64_t>(std::floor(static_cast<double>(size) * fraction)));
  }
  int64_t left = size - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (size_t i = 0; left > 0; i = (i + 1) % counts.size(), --left) ++counts[i];
  return counts;
}

}  // namespace

DataLoader::DataLoader(std::shared_ptr<const data::Dataset> dataset, DataLoaderOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)) {
  check(options_);
}

int64_t DataLoader::size() const {
  const int64_t samples = options_.sampler != nullptr ? options_.sampler->size()
                          : options_.order != nullptr ? options_.order->size()
                                                      : dataset_->size();
  return data::steps_of_epoch(samples, options_.batch_size, options_.drop_last);
}

std::shared_ptr<const data::Order> DataLoader::next_order() const {
  if (options_.sampler != nullptr) return std::make_shared<Listed>(options_.sampler->indices());
  if (options_.order != nullptr) return options_.order;
  return options_.shuffle ? data::shuffled(dataset_->size(), options_.seed) : data::in_order(dataset_->size());
}

data::Pass<data::Batch> DataLoader::pass() {
  const uint32_t epoch = epoch_++;
  const int64_t batches = size();
  if (batches == 0) return data::Pass<data::Batch>([] { return std::nullopt; });
  const data::LaneSampler sampler({.dataset_size = dataset_->size(),
                                   .batch_size = options_.batch_size,
                                   .seed = options_.seed,
                                   .drop_last = options_.drop_last,
                                   .order = next_order()});
  const int64_t wanted = int64_t{options_.prefetch_factor} * std::max(1, options_.num_workers);
  const auto loader = std::make_shared<data::Loader>(
      dataset_, sampler,
      data::LoaderOptions{.workers = options_.num_workers,
                          .prefetch = static_cast<int>(std::min(wanted, int64_t{data::kMostPrefetch})),
                          .end = data::Position{.epoch = epoch + 1},
                          .timeout = options_.timeout.count() == 0 ? std::chrono::nanoseconds::max() : options_.timeout,
                          .memory = options_.memory},
      data::Position{.epoch = epoch});
  return data::Pass<data::Batch>([loader, left = batches]() mutable -> std::optional<data::Batch> {
    if (left == 0) return std::nullopt;
    data::Batch batch = std::move(loader->next().lanes.front());
    --left;
    return batch;
  });
}

std::vector<std::shared_ptr<const data::Dataset>> random_split(const std::shared_ptr<const data::Dataset>& dataset,
                                                               const std::vector<double>& lengths, uint64_t seed) {
  const int64_t size = dataset->size();
  const auto counts = counts_of_fractions(size, lengths);
  auto indices = data::split_by_counts(size, counts ? *counts : counts_of(size, lengths), seed);
  std::vector<std::shared_ptr<const data::Dataset>> parts;
  for (auto& part : indices) {
    const std::string text = cat(part.size(), " of ", dataset->description());
    parts.push_back(data::subset(dataset, std::move(part), text));
  }
  return parts;
}

}  // namespace lockstep::pytorch
