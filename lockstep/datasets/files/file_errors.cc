#include "lockstep/datasets/files/file_errors.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "lockstep/base/error.h"

namespace lockstep::datasets {

bool is_machines_fault(int error) {
  constexpr std::array kFaults = {EIO,     ESTALE,    ENXIO,     ENODEV,       ENOMEM,    EMFILE,    ENFILE,   ENOTCONN,
                                  ENOLINK, ETIMEDOUT, EHOSTDOWN, EHOSTUNREACH, EREMOTEIO, ENOMEDIUM, ENETDOWN, EUCLEAN};
  return std::find(kFaults.begin(), kFaults.end(), error) != kFaults.end();
}

void throw_file_error(const std::string& path, const std::string& what, int error) {
  if (is_machines_fault(error)) {
    throw IoError(path, ": ", what, ": ", errno_text(error), "; is the disk or the mount all right?");
  }
  throw DataError(path, ": ", what, ": ", errno_text(error), "; check the path and its permissions");
}

}  // namespace lockstep::datasets
