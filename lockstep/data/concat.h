// A data set made of others, one after the other, as torch.utils.data.ConcatDataset.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

// The samples of all parts, numbered through. It has the parts' classes: as many as the part with most, and their names
// where they have some. Throws ConfigError for no parts, for parts of other fields than the first one's, and for
// classes of other names.
std::shared_ptr<const Dataset> concat(std::vector<std::shared_ptr<const Dataset>> parts);

}  // namespace lockstep::data
