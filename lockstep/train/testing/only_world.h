// The world of a test program: a process joins one once.
#pragma once

#include <memory>

#include "lockstep/world/world.h"

namespace lockstep::train::testing_support {

inline std::shared_ptr<World> only_world() {
  static const auto instance = lockstep::init();
  return instance;
}

}  // namespace lockstep::train::testing_support
