// The place of what a lane's function throws: the step and the lane.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::parallel {

// Whether an error's text is BatchNorm's, libtorch's or ours, for a batch that has one value a channel.
bool lacks_samples(std::string_view text);

// To be called in a catch block: throws the exception on with "step 3, lane 2" in its text, if it is libtorch's, this
// library's or a std::runtime_error; any other type, which somebody may catch, as it is. Its type stays. Of a lane of
// one sample, BatchNorm's error says how to leave such a batch out; cross entropy's, for a target of other classes than
// the network's outputs, where the data say how many there are.
[[noreturn]] void rethrow_from_lane(int64_t step, int lane, int64_t samples);
// The same from another place, "step 3, micro-batch 2", whose batch has so many samples.
[[noreturn]] void rethrow_from(const std::string& where, int64_t samples);

}  // namespace lockstep::parallel
