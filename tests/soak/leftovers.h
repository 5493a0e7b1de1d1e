// What a job may leave behind: processes, and memory that somebody still holds.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <utility>

#include "lockstep/base/node_memory.h"

namespace lockstep::soak {

// The files behind a node's memory, told apart from all others of the machine.
using FileIds = std::set<std::pair<dev_t, ino_t>>;
FileIds files_of(const NodeMemory& memory);

// A line for each process with the entry "NAME=value" in its environment, and for each that holds one of these files,
// open or mapped; and for each file of ours in /dev/shm, where none belongs.
std::string leftovers(const std::string& environment_entry, const FileIds& files);

// Bytes of memory that this process holds.
int64_t resident_bytes();

}  // namespace lockstep::soak
