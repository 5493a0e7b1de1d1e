// The one precompiled header: what libtorch costs most to parse, for every target that links it.
#pragma once
#include <ATen/ATen.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <nlohmann/json.hpp>
