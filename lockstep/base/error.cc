#include "lockstep/base/error.h"

#include <system_error>

namespace lockstep {

std::string errno_text(int error) { return cat(std::generic_category().message(error), " (errno ", error, ")"); }

}  // namespace lockstep
