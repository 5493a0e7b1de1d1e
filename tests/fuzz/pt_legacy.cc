// .pt files of before PyTorch 1.6: pickles in a row, and the storages after them.
#include "checkpoints.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lockstep::fuzz::read_as_checkpoint({data, size});
}
