#include "lockstep/checkpoint/formats/storage_source.h"

#include <ATen/ATen.h>

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {

c10::Storage allocate_storage(int64_t bytes) {
  try {
    return at::empty({bytes}, at::kByte).storage();
  } catch (const c10::Error&) {
    throw IoError("no memory for a tensor of ", human_bytes(static_cast<uint64_t>(bytes)), " of a checkpoint");
  }
}

}  // namespace lockstep::checkpoint
