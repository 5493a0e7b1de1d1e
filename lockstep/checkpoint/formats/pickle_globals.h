// The closed list of globals that a checkpoint's pickle may name. Any other is refused before anything is built.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string_view>

namespace lockstep::checkpoint {

// A class or function that the interpreter knows by name and imitates. None of Python's is ever called.
struct Global {
  enum class Kind : uint8_t {
    kDict,              // collections.OrderedDict, collections.Counter
    kSequence,          // torch.Size, and sets: read as the tuple or list that they are made from
    kDevice,            // torch.device: read as its name
    kEncode,            // _codecs.encode: bytes at protocol 2
    kRebuildTensor,     // torch._utils._rebuild_tensor and _rebuild_tensor_v2
    kRebuildTensorV3,   // torch._utils._rebuild_tensor_v3: an untyped storage and an element type
    kRebuildParameter,  // torch._utils._rebuild_parameter
    kStorage,           // torch.FloatStorage …
    kDtype,             // torch.float32 …: read as its name
  };
  Kind kind;
  at::ScalarType dtype = at::kByte;  // of kStorage and kDtype
};

// Throws a Fault that names the global if it is not on the list.
Global find_global(std::string_view module, std::string_view name);

}  // namespace lockstep::checkpoint
