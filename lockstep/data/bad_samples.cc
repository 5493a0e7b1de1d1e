#include "lockstep/data/bad_samples.h"

#include <optional>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/fnv.h"
#include "lockstep/base/shown.h"
#include "lockstep/data/permutation.h"

namespace lockstep::data {
namespace {

// Substitutes' draws have numbers that no sample and no draw of an order has: they are below 2^55.
constexpr uint64_t kOfASubstitute = uint64_t{1} << 55;

// Nothing if the sample has been read.
std::optional<BadSample> read_or_name(const Dataset& dataset, const SampleRead& sample,
                                      const std::function<void(const SampleRead&)>& read) {
  try {
    read(sample);
  } catch (const DataError& error) {
    const std::string name = shown(first_line(dataset.name_of(sample.index))), why = shown(first_line(error.what()));
    return BadSample{name, why.find(name) == std::string::npos ? cat(name, ": ", why) : why, sample.index};
  }
  return std::nullopt;
}

}  // namespace

std::shared_ptr<const Substitutes> Substitutes::none() { return std::make_shared<Substitutes>(nullptr, 0); }

bool Substitutes::read(const Dataset& dataset, const SampleRead& sample, std::vector<BadSample>& bad,
                       const std::function<void(const SampleRead&)>& read) const {
  auto found = read_or_name(dataset, sample, read);
  if (!found) return true;
  bad.push_back(*found);
  if (order_ == nullptr) return false;
  const Draw& draw = sample.draw;
  const auto picks = static_cast<uint64_t>(order_->size());
  const Permutation places(picks, fnv1a(fnv1a(kFnvSeed, draw.seed), draw.number), draw.epoch, Purpose::kSubstitute);
  std::set<int64_t> met = {sample.index};
  for (uint64_t attempt = 0; attempt < picks; ++attempt) {
    if (std::ssize(met) > most_) return false;
    const int64_t index = order_->at(draw.epoch, static_cast<int64_t>(places(attempt))).index;
    if (met.contains(index)) continue;
    const Draw own{.seed = draw.seed, .epoch = draw.epoch, .number = draw.number | kOfASubstitute};
    found = read_or_name(dataset, {.index = index, .draw = own}, read);
    if (!found) return true;
    bad.push_back(*found);
    met.insert(index);
  }
  throw DataError(dataset.description(), ": none of its samples can be read: ", bad.front().why);
}

}  // namespace lockstep::data
