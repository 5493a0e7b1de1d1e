#include "lockstep/data/order.h"

#include <bit>
#include <cmath>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/base/fnv.h"
#include "lockstep/data/permutation.h"

namespace lockstep::data {
namespace {

Pick pick_of(uint64_t index) { return {.index = static_cast<int64_t>(index), .number = index}; }

class InOrder final : public Order {
 public:
  explicit InOrder(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  Pick at(uint32_t /*epoch*/, int64_t position) const override { return pick_of(static_cast<uint64_t>(position)); }
  std::string text() const override { return "in order"; }

 private:
  int64_t size_;
};

class Shuffled final : public Order {
 public:
  Shuffled(int64_t size, uint64_t seed) : size_(size), seed_(seed) {}
  int64_t size() const override { return size_; }
  Pick at(uint32_t epoch, int64_t position) const override {
    const Permutation order(static_cast<uint64_t>(size_), seed_, epoch);
    return pick_of(order(static_cast<uint64_t>(position)));
  }
  std::string text() const override { return "shuffled"; }

 private:
  int64_t size_;
  uint64_t seed_;
};

// The whole blocks are permuted; the last one, which may be shorter, is put between them at a place of its own, so that
// a block is found from a position by a division.
class Blocks final : public Order {
 public:
  Blocks(int64_t size, int64_t block, uint64_t seed)
      : block_(static_cast<uint64_t>(block)),
        whole_(static_cast<uint64_t>(size) / block_),
        rest_(static_cast<uint64_t>(size) % block_),
        seed_(seed) {}
  int64_t size() const override { return static_cast<int64_t>(whole_ * block_ + rest_); }
  std::string text() const override { return cat("blocks of ", block_); }

  Pick at(uint32_t epoch, int64_t position) const override {
    auto place = static_cast<uint64_t>(position);
    const uint64_t rest_at = place_of_rest(epoch) * block_;
    if (place >= rest_at && place < rest_at + rest_) return within(whole_, rest_, place - rest_at, epoch);
    if (place >= rest_at + rest_) place -= rest_;
    const Permutation blocks(whole_, seed_, epoch, Purpose::kBlocks);
    return within(blocks(place / block_), block_, place % block_, epoch);
  }

 private:
  // So many whole blocks come before the last one.
  uint64_t place_of_rest(uint32_t epoch) const {
    RandomStream random(seed_, Purpose::kBlocks, epoch, /*index=*/uint64_t{1} << 55);
    return (uint64_t{random.bits()} * (whole_ + 1)) >> 32;
  }
  Pick within(uint64_t block, uint64_t samples, uint64_t place, uint32_t epoch) const {
    const Permutation order(samples, fnv1a(fnv1a(kFnvSeed, seed_), block), epoch, Purpose::kBlocks);
    return pick_of(block * block_ + order(place));
  }

  uint64_t block_;
  uint64_t whole_;  // blocks
  uint64_t rest_;   // samples of the last block
  uint64_t seed_;
};

class WithReplacement final : public Order {
 public:
  WithReplacement(int64_t size, int64_t draws, uint64_t seed)
      : size_(static_cast<uint32_t>(size)), draws_(draws), seed_(seed) {
    if (draws < 1) throw ConfigError("an order of ", draws, " draws with replacement; 1 is the least");
    if (size < 1 || size > std::numeric_limits<uint32_t>::max()) {
      throw ConfigError("an order of draws with replacement from ", size, " samples; 1 to 2^32 - 1 are possible");
    }
  }
  int64_t size() const override { return draws_; }
  std::string text() const override { return "with replacement"; }
  Pick at(uint32_t epoch, int64_t position) const override {
    const auto number = static_cast<uint64_t>(position);
    return {.index = RandomStream(seed_, Purpose::kReplacement, epoch, number).below(size_), .number = number};
  }

 private:
  uint32_t size_;
  int64_t draws_;
  uint64_t seed_;
};

// Walker's alias method: n slots of equal probability, of which each belongs to a sample up to a limit and to another
// one above it. The table is made in one fixed order of operations on doubles.
class Weighted final : public Order {
 public:
  Weighted(const std::vector<double>& weights, int64_t draws, uint64_t seed) : draws_(draws), seed_(seed) {
    if (draws < 1) throw ConfigError("a weighted order of ", draws, " draws; 1 is the least");
    double sum = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (!(weights[i] >= 0) || !std::isfinite(weights[i])) {
        throw ConfigError("a weighted order: weight ", i, " is ", weights[i], "; from 0 upwards are possible");
      }
      sum += weights[i];
      hash_ = fnv1a(hash_, std::bit_cast<uint64_t>(weights[i]));
    }
    if (!(sum > 0) || !std::isfinite(sum)) throw ConfigError("a weighted order: the weights add up to ", sum);
    if (weights.size() > std::numeric_limits<uint32_t>::max()) {
      throw ConfigError("a weighted order of ", weights.size(), " samples; 2^32 - 1 are the most");
    }
    fill(weights, sum);
  }

  int64_t size() const override { return draws_; }
  std::string text() const override { return cat("weighted ", hash_); }
  Pick at(uint32_t epoch, int64_t position) const override {
    const auto number = static_cast<uint64_t>(position);
    RandomStream random(seed_, Purpose::kWeighted, epoch, number);
    const Slot& slot = slots_[random.below(static_cast<uint32_t>(slots_.size()))];
    const uint32_t index = random.bits() < slot.limit ? slot.below : slot.above;
    return {.index = index, .number = number};
  }

 private:
  struct Slot {
    uint64_t limit = uint64_t{1} << 32;  // of 32 random bits
    uint32_t below = 0, above = 0;       // samples
  };

  void fill(const std::vector<double>& weights, double sum) {
    const size_t n = weights.size();
    std::vector<double> share(n);
    std::vector<uint32_t> poor, rich;
    for (size_t i = 0; i < n; ++i) {
      share[i] = weights[i] * static_cast<double>(n) / sum;
      (share[i] < 1 ? poor : rich).push_back(static_cast<uint32_t>(i));
      slots_.push_back({.below = static_cast<uint32_t>(i), .above = static_cast<uint32_t>(i)});
    }
    while (!poor.empty() && !rich.empty()) {
      const uint32_t few = poor.back(), many = rich.back();
      poor.pop_back();
      slots_[few].limit = static_cast<uint64_t>(share[few] * 0x1p32);
      slots_[few].above = many;
      share[many] -= 1 - share[few];
      if (share[many] < 1) {
        rich.pop_back();
        poor.push_back(many);
      }
    }
  }

  int64_t draws_;
  uint64_t seed_;
  uint64_t hash_ = kFnvSeed;
  std::vector<Slot> slots_;
};

}  // namespace

std::shared_ptr<const Order> in_order(int64_t size) { return std::make_shared<InOrder>(size); }

std::shared_ptr<const Order> shuffled(int64_t size, uint64_t seed) { return std::make_shared<Shuffled>(size, seed); }

std::shared_ptr<const Order> shuffled_in_blocks(int64_t size, int64_t block, uint64_t seed) {
  if (block < 1) throw ConfigError("an order by blocks of ", block, " samples; 1 is the least");
  return std::make_shared<Blocks>(size, block, seed);
}

std::shared_ptr<const Order> with_replacement(int64_t size, int64_t draws, uint64_t seed) {
  return std::make_shared<WithReplacement>(size, draws, seed);
}

std::shared_ptr<const Order> weighted(const std::vector<double>& weights, int64_t draws, uint64_t seed) {
  return std::make_shared<Weighted>(weights, draws, seed);
}

}  // namespace lockstep::data
