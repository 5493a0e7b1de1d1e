// Tests of bad input: the message that refuses it.
#pragma once

#include <string>

#include "lockstep/base/error.h"

namespace lockstep::testing_support {

// The text of the ConfigError that act() throws; empty if it throws none.
template <typename Act>
std::string refusal(Act&& act) {
  try {
    act();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace lockstep::testing_support
