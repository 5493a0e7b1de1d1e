// What a rank is at between its steps, for the ranks that wait for it.
#pragma once

#include <string>

#include "lockstep/base/board.h"

namespace lockstep::train {

// A phase that lasts as long as the object, named on the board: "evaluating at step 500". Thereafter the rank computes.
class Phase {
 public:
  Phase(BoardRank& self, const std::string& name) : self_(self) {
    self_.beat();
    self_.doing.set(name);
  }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;
  ~Phase() {
    self_.beat();
    self_.doing.set("");
  }

 private:
  BoardRank& self_;
};

}  // namespace lockstep::train
