#include "lockstep/base/no_threads.h"

#include "lockstep/base/error.h"

namespace lockstep {

void throw_no_threads(int wanted, const std::string& purpose, const std::system_error& error) {
  throw IoError("can't start ", wanted, wanted == 1 ? " thread " : " threads ", purpose, ": ", error.what(),
                "; ask for fewer workers");
}

}  // namespace lockstep
