// How fast this machine computes in each precision, measured once and remembered.
#pragma once

#include <optional>
#include <string>

namespace lockstep::amp {

// GFLOP/s of one thread in a convolution of a ResNet's first stage, forward and backward. 0: it can't compute in it.
struct Rates {
  double fp32 = 0;
  double bf16 = 0;
  double fp16 = 0;
};

// Measures for about 0.3 s; a dtype that a smaller convolution shows to be slow is not measured at full size. Sets and
// puts back libtorch's threads; draws no random numbers.
Rates measure_rates();

// $XDG_CACHE_HOME/lockstep, else $HOME/.cache/lockstep; "" where neither is set.
std::string cache_folder();

// What was remembered in `folder` for this kind of CPU and this libtorch; nothing where there is none that can be read.
std::optional<Rates> read_rates(const std::string& folder);
// Remembers them, whole or not at all. False where the folder can't be written, which is no error: they are measured
// again next time.
bool write_rates(const std::string& folder, const Rates& rates);

// Those remembered in the user's cache folder, else measured now and remembered there.
Rates rates_of_this_machine();

}  // namespace lockstep::amp
