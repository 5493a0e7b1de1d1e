#include "lockstep/datasets/whole_sample.h"

#include "lockstep/data/dataset.h"
#include "lockstep/datasets/scan_masks.h"

namespace lockstep::datasets {

void WholeSample::open(int64_t index) {
  data::check_index(index, source_.size());
  stored_ = {};
  const std::string name = source_.name_of(index);
  stored_ =
      source_.has_masks() ? source_.read_pair(index, memory_) : EncodedPair{source_.read(index, memory_.image), {}};
  image::DecodeOptions options = turned_;
  options.channels = open_encoded(image_, stored_.image, name, options).channels;
  if (options.channels == 1) open_encoded(image_, stored_.image, name, options);
  if (source_.has_masks()) open_encoded(mask_, stored_.mask, source_.mask_name_of(index), options);
}

void WholeSample::decode(const image::Pipeline& pipeline) {
  times_ = {};
  mask_values_.clear();
  if (!source_.has_masks()) return pipeline.run(image_, nullptr, nullptr, {}, scratch_, sample_, times_);
  const std::set<uint32_t> values = values_of(mask_, scratch_.values);
  mask_values_.assign(values.begin(), values.end());
  const std::string name = mask_.name();
  const image::DecodeOptions options = mask_.options();
  open_encoded(mask_, stored_.mask, name, options);
  const image::LabelMap labels(mask_values_);
  pipeline.run(image_, &mask_, &labels, {}, scratch_, sample_, times_);
}

}  // namespace lockstep::datasets
