#include "lockstep/compat/paddle/reader.h"

#include "lockstep/data/read_batch.h"

namespace lockstep::paddle {

Reader<Sample> reader_of(std::shared_ptr<const data::Dataset> dataset, uint64_t seed) {
  return [dataset = std::move(dataset), seed, passes = std::make_shared<uint32_t>(0)] {
    const auto next = [dataset, seed, epoch = (*passes)++, index = int64_t{0}]() mutable -> std::optional<Sample> {
      if (index == dataset->size()) return std::nullopt;
      const Draw draw{.seed = seed, .epoch = epoch, .number = static_cast<uint64_t>(index)};
      return Sample{dataset, {.index = index++, .draw = draw}};
    };
    return data::Pass<Sample>(next);
  };
}

data::Batch read(const std::vector<Sample>& samples) {
  if (samples.empty()) throw ConfigError("paddle::read: a batch of no samples");
  const auto& dataset = samples.front().dataset;
  std::vector<data::SampleRead> places;
  for (const Sample& sample : samples) {
    if (sample.dataset != dataset) {
      throw ConfigError("paddle::read: a batch of samples of ", dataset->description(), ", and of ",
                        sample.dataset->description(), "; read each by itself");
    }
    places.push_back(sample.place);
  }
  return data::read_samples(*dataset, places);
}

}  // namespace lockstep::paddle
