// The list of passed-over samples as a value of a checkpoint: a list of [name, why, index].
#pragma once

#include <vector>

#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/checkpoint/formats/value_view.h"
#include "lockstep/data/skipped_samples.h"

namespace lockstep::loop {

checkpoint::List skipped_to_list(const std::vector<data::BadSample>& samples);
// Throws DataError for a value of another form.
std::vector<data::BadSample> skipped_from_list(const checkpoint::ValueView& saved);

}  // namespace lockstep::loop
