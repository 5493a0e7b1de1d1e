// Runs code in a child process and sees each of its calls on the files of a folder (by ptrace, so whatever library
// makes the call, on whatever thread): they are recorded, and the child can be killed after any of them, or any can
// fail.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::faults {

// A system call on a file or folder, by names below the watched folder ("" is that folder itself).
struct DiskCall {
  enum class Kind { kOpen, kWrite, kSync, kRename, kLink, kUnlink, kTruncate, kMakeFolder, kNote };
  Kind kind = Kind::kOpen;
  std::string name;        // of kRename the old one; of kNote what note() said
  std::string other;       // of kRename the new name; of kLink what the link holds
  bool creates = false;    // of kOpen: O_CREAT
  bool truncates = false;  // of kOpen: O_TRUNC
  uint64_t offset = 0;     // of kWrite; of kTruncate the new size
  std::string data = {};   // of kWrite, what was written
  int64_t result = 0;      // of the call; -errno
};
std::string text_of(const DiskCall& call);  // "write step-000003.pt.tmp", for messages

// What is done about a call. Notes are neither counted nor decided about.
struct Decision {
  int fail_with = 0;       // the errno with which it fails, and nothing else happens; 0: it is carried out
  bool then_kill = false;  // whether the child is killed when it is done
};
constexpr Decision kPass{};

struct Traced {
  std::vector<DiskCall> calls;  // in order, as they ended
  std::string said;             // what the child's code returned; "" if it was killed
  bool killed = false;
};

// Runs `body` in a child of this process, which must have one thread. `decide` is asked before each call with its
// number, from 0. Throws IoError where processes can't be traced.
Traced run_traced(const std::string& folder, const std::function<std::string()>& body,
                  const std::function<Decision(size_t number, const DiskCall& call)>& decide);

// Whether this machine lets a process trace its children, which some containers don't.
bool can_trace();

// Leaves a note among the recorded calls. For `body`.
void note(const std::string& text);

}  // namespace lockstep::faults
