#include "lockstep/datasets/files/file_errors.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"

namespace lockstep::datasets {

bool is_machines_fault(int error) {
  constexpr std::array kFaults = {EIO,     ESTALE,    ENXIO,     ENODEV,       ENOMEM,    EMFILE,    ENFILE,   ENOTCONN,
                                  ENOLINK, ETIMEDOUT, EHOSTDOWN, EHOSTUNREACH, EREMOTEIO, ENOMEDIUM, ENETDOWN, EUCLEAN};
  return std::find(kFaults.begin(), kFaults.end(), error) != kFaults.end();
}

void throw_file_error(const std::string& path, const std::string& what, int error) {
  if (is_machines_fault(error)) {
    throw IoError(shown(path), ": ", what, ": ", errno_text(error), "; is the disk or the mount all right?");
  }
  throw DataError(shown(path), ": ", what, ": ", errno_text(error), "; check the path and its permissions");
}

void throw_write_error(const std::string& path, int error) {
  const char* advice = "";
  if (error == ENOSPC || error == EDQUOT) advice = "; free space there, or choose another folder";
  if (error == EFBIG) advice = "; the limit on file sizes (ulimit -f) is too low";
  if (error == EACCES || error == EPERM || error == EROFS) advice = "; choose a folder that can be written";
  throw IoError(path, ": can't be written: ", errno_text(error), advice);
}

}  // namespace lockstep::datasets
