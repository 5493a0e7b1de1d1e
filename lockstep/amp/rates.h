// The rate at which this machine computes in each precision, measured once and kept in a cache file.
#pragma once

#include <optional>
#include <string>

namespace lockstep::amp {

// GFLOP/s of one thread in a convolution of a ResNet's first stage, forward and backward. 0: the machine can't compute
// in that dtype.
struct Rates {
  double fp32 = 0;
  double bf16 = 0;
  double fp16 = 0;
};

// Measures for about 0.3 s. A dtype that a smaller convolution shows to be slow is not measured at full size. Sets
// libtorch's number of threads and restores it; draws no random numbers.
Rates measure_rates();

// Returns $XDG_CACHE_HOME/lockstep, else $HOME/.cache/lockstep, or "" if neither is set.
std::string cache_folder();

// Reads the rates in `folder` for this kind of CPU and this libtorch. Returns nothing if there are none that can be
// read.
std::optional<Rates> read_rates(const std::string& folder);
// Writes the rates to `folder`, atomically. Returns false if the folder can't be written, which is no error: they are
// measured again next time.
bool write_rates(const std::string& folder, const Rates& rates);

// Reads the rates in the user's cache folder, or measures them now and writes them there.
Rates rates_of_this_machine();

}  // namespace lockstep::amp
