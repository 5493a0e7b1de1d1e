// How a checkpoint is read.
#pragma once

namespace lockstep::checkpoint {

struct ReadOptions {
  // Classes and functions that are not on the closed list (pickle_globals.h) become Opaque values, which hold their
  // name alone; nothing of them is called in either case. Off: they are errors.
  bool ignore_unknown = false;
  // States of optimizers, {"state": …, "param_groups": …}, come into memory as their checksums are compared, for an
  // optimizer that takes their tensors over (take_elements() in stored_tensor.h). Off: they remain in the file.
  bool takes_optimizers = false;
};

}  // namespace lockstep::checkpoint
