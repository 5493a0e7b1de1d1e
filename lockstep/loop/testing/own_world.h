// The world of a test program of one rank, which all its tests share: a process joins one world.
#pragma once

#include <memory>

#include "lockstep/world/world.h"

namespace lockstep::loop::testing_support {

inline std::shared_ptr<World> own_world() {
  static const std::shared_ptr<World> world = init();
  return world;
}

}  // namespace lockstep::loop::testing_support
