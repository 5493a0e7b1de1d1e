#include "lockstep/checkpoint/formats/pickle_globals.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lockstep/base/text.h"
#include "lockstep/checkpoint/formats/dtype.h"
#include "lockstep/checkpoint/formats/printable.h"

namespace lockstep::checkpoint {
namespace {

using Kind = Global::Kind;

struct Row {
  std::string_view module;
  std::string_view name;
  Kind kind;
};

constexpr Row kRows[] = {
    {"collections", "OrderedDict", Kind::kDict},
    {"collections", "Counter", Kind::kDict},
    {"collections", "defaultdict", Kind::kDefaultDict},
    {"torch", "Size", Kind::kSequence},
    {"torch", "device", Kind::kDevice},
    {"torch", "Tensor", Kind::kTensorClass},
    {"torch.nn.parameter", "Parameter", Kind::kTensorClass},
    {"_codecs", "encode", Kind::kEncode},
    {"torch._utils", "_rebuild_tensor", Kind::kRebuildTensor},
    {"torch._utils", "_rebuild_tensor_v2", Kind::kRebuildTensor},
    {"torch._utils", "_rebuild_tensor_v3", Kind::kRebuildTensorV3},
    {"torch._utils", "_rebuild_parameter", Kind::kRebuildParameter},
    {"torch._utils", "_rebuild_parameter_with_state", Kind::kRebuildParameter},
    {"torch._tensor", "_rebuild_from_type_v2", Kind::kRebuildFromType},
    {"torch._utils", "_rebuild_device_tensor_from_numpy", Kind::kRebuildFromHost},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", Kind::kRebuildFromHost},
    {"torch._utils", "_rebuild_xla_tensor", Kind::kRebuildFromHost},
    {"numpy", "ndarray", Kind::kNumpyArray},
    {"numpy", "dtype", Kind::kNumpyDtype},
};

// Of the modules "builtins" and, at protocol 2, "__builtin__".
constexpr std::pair<std::string_view, Kind> kBuiltins[] = {
    {"set", Kind::kSequence}, {"frozenset", Kind::kSequence}, {"list", Kind::kSequence}, {"tuple", Kind::kSequence},
    {"dict", Kind::kDict},    {"bytearray", Kind::kBytes},    {"bytes", Kind::kBytes},
};

// Of numpy's modules, whose names changed with numpy 2.
constexpr std::pair<std::string_view, Kind> kNumpys[] = {
    {"_reconstruct", Kind::kNumpyReconstruct},
    {"scalar", Kind::kNumpyScalar},
    {"_frombuffer", Kind::kNumpyFromBuffer},
};

// Tensors that have no form here, by the function that rebuilds them in Python.
constexpr std::pair<std::string_view, std::string_view> kOtherTensors[] = {
    {"_rebuild_qtensor", "a quantized tensor; save its dequantize()"},
    {"_rebuild_sparse_tensor", "a sparse tensor; save its to_dense()"},
    {"_rebuild_nested_tensor", "a nested tensor; save its unbind()"},
    {"_rebuild_meta_tensor_no_storage", "a tensor of the meta device, which has no elements"},
    {"_rebuild_wrapper_subclass", "a tensor subclass; save plain tensors"},
};

template <typename Rows>
auto find_named(const Rows& rows, std::string_view name) {
  return std::find_if(std::begin(rows), std::end(rows), [&](const auto& row) { return row.first == name; });
}

std::optional<Global> find_torch(std::string_view module, std::string_view name) {
  if (module == "torch" || module == "torch.storage") {
    if (const auto dtype = dtype_of_storage_class(name)) return Global{Kind::kStorage, *dtype};
  }
  if (module == "torch") {
    if (const auto dtype = dtype_by_name(name)) return Global{Kind::kDtype, *dtype};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Global> find_global(std::string_view module, std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name && row.module == module) return Global{row.kind};
  }
  if (module == "builtins" || module == "__builtin__") {
    const auto row = find_named(kBuiltins, name);
    if (row != std::end(kBuiltins)) return Global{row->second};
  }
  const bool frombuffer = module == "numpy.core.numeric" || module == "numpy._core.numeric";
  if (frombuffer || module == "numpy.core.multiarray" || module == "numpy._core.multiarray") {
    const auto row = find_named(kNumpys, name);
    if (row != std::end(kNumpys) && frombuffer == (row->second == Kind::kNumpyFromBuffer)) return Global{row->second};
  }
  return find_torch(module, name);
}

std::string global_name(std::string_view module, std::string_view name) {
  return printable(module) + "." + printable(name);
}

std::string global_fault(std::string_view module, std::string_view name) {
  constexpr std::string_view kHint = " (--ignore-unknown reads the rest without it)";
  const auto other = find_named(kOtherTensors, name);
  if (module == "torch._utils" && other != std::end(kOtherTensors)) {
    return cat("global ", global_name(module, name), " is not read: ", other->second, kHint);
  }
  return cat("global ", global_name(module, name), " is not one that a checkpoint may name", kHint);
}

}  // namespace lockstep::checkpoint
