// What a failed call on a data file means: the machine's fault, or the file's.
#pragma once

#include <string>

namespace lockstep::datasets {

// Whether a call failed because the machine or its disk did: an input/output error, a lost mount, no memory, no free
// descriptors. Skipping the file would not help.
bool is_machines_fault(int error);

// Throws what `error`, the errno of a call on `path`, stands for: IoError for the machine's faults, else DataError.
// `what` follows the path: "can't be read".
[[noreturn]] void throw_file_error(const std::string& path, const std::string& what, int error);

// Throws IoError for a file that can't be written, with what to do about it.
[[noreturn]] void throw_write_error(const std::string& path, int error);

}  // namespace lockstep::datasets
