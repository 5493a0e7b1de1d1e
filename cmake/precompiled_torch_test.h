// The precompiled header of tests that link libtorch.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "precompiled_torch.h"
