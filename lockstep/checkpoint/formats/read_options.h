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
  // Checksums of large tensors are compared as their elements are read, in place of before: the file is read once, and
  // what nobody asks for is not read. Damage is then found when part of the model has been overwritten, and leaves NaN
  // in it (copy_elements() in stored_tensor.h). A program that ends with the error may ask for
  // this. Off: all checksums have been compared when the file is open.
  bool checks_on_the_way = false;
};

}  // namespace lockstep::checkpoint
