#include "lockstep/datasets/whole_sample.h"

#include "lockstep/data/dataset.h"

namespace lockstep::datasets {

void WholeSample::open(int64_t index) {
  data::check_index(index, source_.size());
  stored_ = {};
  const std::string name = source_.name_of(index);
  stored_ =
      source_.has_masks() ? source_.read_pair(index, memory_) : EncodedPair{source_.read(index, memory_.image), {}};
  image::DecodeOptions options = turned_;
  const image::ImageInfo& info = open_encoded(image_, stored_.image, name, options);
  options.channels = source_.has_masks() ? info.with_alpha() : info.channels;  // which may be one of the network's
  if (options.channels != 3) open_encoded(image_, stored_.image, name, options);
  if (!source_.has_masks()) return;
  open_encoded(mask_, stored_.mask, source_.mask_name_of(index), options);
}

void WholeSample::decode(const image::Pipeline& pipeline) {
  times_ = {};
  pipeline.run(image_, source_.has_masks() ? &mask_ : nullptr, nullptr, {}, scratch_, sample_, times_);
}

}  // namespace lockstep::datasets
