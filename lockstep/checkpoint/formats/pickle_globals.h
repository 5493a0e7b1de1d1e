// The closed list of globals that a checkpoint's pickle may name. Any other is refused before anything is built, or
// read as an opaque leaf where the caller asked for that.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::checkpoint {

// A class or function that the interpreter knows by name and imitates. None of Python's is ever called.
struct Global {
  enum class Kind : uint8_t {
    kDict,              // dict, collections.OrderedDict, collections.Counter
    kDefaultDict,       // collections.defaultdict
    kSequence,          // torch.Size, list, tuple and sets: read as the tuple or list that they are made from
    kBytes,             // bytes, bytearray: read as the bytes that they are made from
    kDevice,            // torch.device: read as its name
    kEncode,            // _codecs.encode: bytes at protocol 2
    kRebuildTensor,     // torch._utils._rebuild_tensor and _rebuild_tensor_v2
    kRebuildTensorV3,   // torch._utils._rebuild_tensor_v3: an untyped storage and an element type
    kRebuildParameter,  // torch._utils._rebuild_parameter and _rebuild_parameter_with_state: read as their tensor
    kRebuildFromType,   // torch._tensor._rebuild_from_type_v2: a tensor with attributes of its own, read without them
    kRebuildFromHost,   // torch._utils._rebuild_device_tensor_from_…: a tensor of an accelerator, from its copy
    kTensorClass,       // torch.Tensor, torch.nn.parameter.Parameter
    kStorage,           // torch.FloatStorage …
    kDtype,             // torch.float32 …: read as its name
    kNumpyReconstruct,  // numpy.core.multiarray._reconstruct: an array that a state fills
    kNumpyFromBuffer,   // numpy.core.numeric._frombuffer: an array at protocol 5
    kNumpyScalar,       // numpy.core.multiarray.scalar: read as a number
    kNumpyArray,        // numpy.ndarray
    kNumpyDtype,        // numpy.dtype
  };
  Kind kind;
  at::ScalarType dtype = at::kByte;  // of kStorage and kDtype
};

// Nothing if the global is not on the list.
std::optional<Global> find_global(std::string_view module, std::string_view name);

// "os.system", printable and of bounded length.
std::string global_name(std::string_view module, std::string_view name);

// Why a global that is not on the list is refused.
std::string global_fault(std::string_view module, std::string_view name);

}  // namespace lockstep::checkpoint
