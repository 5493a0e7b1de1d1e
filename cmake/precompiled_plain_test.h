// The precompiled header of tests that do not link libtorch.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "precompiled_plain.h"
