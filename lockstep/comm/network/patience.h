// The time for which an exchange waits. Its end may move while it waits: ranks that are slow but make progress are
// waited for (watch.h).
#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include "lockstep/base/clock.h"

namespace lockstep::comm {

class Patience {
 public:
  using Left = std::function<std::chrono::nanoseconds()>;

  // Ends at the deadline.
  Patience(const Deadline& deadline) : deadline_(deadline) {}
  // `more` is asked from the deadline on, and tells the time that is left then. Any thread may ask. It may need a lock
  // that a thread holds which aborts the mesh, so no mesh asks under a lock of its own that abort() takes.
  Patience(const Deadline& deadline, Left more) : deadline_(deadline), more_(std::move(more)) {}

  // The time that is left as far as is known now; none or less once the patience is over. Any thread.
  std::chrono::nanoseconds left() const {
    const auto left = deadline_.left();
    return left.count() > 0 || !more_ ? left : more_();
  }
  bool over() const { return left().count() <= 0; }

 private:
  Deadline deadline_;
  Left more_;
};

}  // namespace lockstep::comm
