// A guard that silences c10d's own warnings.
#pragma once

namespace lockstep::comm {

// Keeps c10d's own warnings off standard error while such an object lives, unless the user asked for them by
// TORCH_CPP_LOG_LEVEL. Any thread.
class QuietC10d {
 public:
  QuietC10d();
  ~QuietC10d();
  QuietC10d(const QuietC10d&) = delete;
  QuietC10d& operator=(const QuietC10d&) = delete;
};

}  // namespace lockstep::comm
