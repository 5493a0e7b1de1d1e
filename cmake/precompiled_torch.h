// The precompiled header of targets that link libtorch: what costs most to parse and is used nearly everywhere. Layers
// (torch/nn/modules/…) are not in it: each brings pending template instances into every file.
#pragma once
#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <nlohmann/json.hpp>
