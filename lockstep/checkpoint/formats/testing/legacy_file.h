// The parts of a file of before PyTorch 1.6 that holds one tensor: [1, 2].
#pragma once

#include <string>

namespace lockstep::checkpoint::testing_support::legacy {

using namespace std::string_literals;

inline const std::string kMagic = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."s;
inline const std::string kVersion = "\x80\x02M\xe9\x03."s;
inline const std::string kSystem = "\x80\x02}X\x0d\x00\x00\x00little_endian\x88s."s;

// ('storage', torch.FloatStorage, 'k', 'cpu', 2, None), as a tensor of two elements.
inline const std::string kTensor =
    "\x80\x02"
    "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    "X\x01\x00\x00\x00kX\x03\x00\x00\x00"
    "cpuK\x02NtQK\x00K\x02\x85K\x01\x85\x89}tR."s;
inline const std::string kKeys = "\x80\x02](X\x01\x00\x00\x00ke."s;
inline const std::string kTwo = "\x02\x00\x00\x00\x00\x00\x00\x00"s;
inline const std::string kContent = "\x00\x00\x80\x3f\x00\x00\x00\x40"s;

}  // namespace lockstep::checkpoint::testing_support::legacy
