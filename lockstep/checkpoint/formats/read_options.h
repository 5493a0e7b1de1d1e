// How a checkpoint is read.
#pragma once

namespace lockstep::checkpoint {

struct ReadOptions {
  // Classes and functions that are not on the closed list (pickle_globals.h) become Opaque values, which hold their
  // name alone; nothing of them is called in either case. Off: they are errors.
  bool ignore_unknown = false;
};

}  // namespace lockstep::checkpoint
