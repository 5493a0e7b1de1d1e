// Tests of bad input: the message that refuses it.
#pragma once

#include <string>

#include "lockstep/base/error.h"

namespace lockstep::testing_support {

// The text of what act() throws, of this type; empty if it throws none.
template <typename Thrown = ConfigError, typename Act>
std::string refusal(Act&& act) {
  try {
    act();
  } catch (const Thrown& error) {
    return error.what();
  }
  return "";
}

}  // namespace lockstep::testing_support
