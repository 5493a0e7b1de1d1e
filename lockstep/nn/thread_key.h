// The dispatcher's key by which operators behave in another way in threads that compute at the same time.
#pragma once

#include <c10/core/DispatchKey.h>

namespace lockstep::nn {

// Nothing else uses it, and it is above those of autograd and devices. It is on in a thread with a ThreadGenerator, and
// only operators that need it have a kernel there.
constexpr auto kThreadKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

}  // namespace lockstep::nn
