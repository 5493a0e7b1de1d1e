#include "lockstep/checkpoint/formats/pickle_globals.h"

#include "lockstep/checkpoint/formats/byte_cursor.h"
#include "lockstep/checkpoint/formats/dtype.h"
#include "lockstep/checkpoint/formats/printable.h"

namespace lockstep::checkpoint {
namespace {

struct Row {
  std::string_view module;
  std::string_view name;
  Global::Kind kind;
};

constexpr Row kRows[] = {
    {"collections", "OrderedDict", Global::Kind::kDict},
    {"collections", "Counter", Global::Kind::kDict},
    {"torch", "Size", Global::Kind::kSequence},
    {"builtins", "set", Global::Kind::kSequence},
    {"__builtin__", "set", Global::Kind::kSequence},
    {"torch", "device", Global::Kind::kDevice},
    {"_codecs", "encode", Global::Kind::kEncode},
    {"torch._utils", "_rebuild_tensor", Global::Kind::kRebuildTensor},
    {"torch._utils", "_rebuild_tensor_v2", Global::Kind::kRebuildTensor},
    {"torch._utils", "_rebuild_tensor_v3", Global::Kind::kRebuildTensorV3},
    {"torch._utils", "_rebuild_parameter", Global::Kind::kRebuildParameter},
};

}  // namespace

Global find_global(std::string_view module, std::string_view name) {
  for (const Row& row : kRows) {
    if (row.module == module && row.name == name) return {row.kind};
  }
  if (module == "torch" || module == "torch.storage") {
    if (const auto dtype = dtype_of_storage_class(name)) return {Global::Kind::kStorage, *dtype};
  }
  if (module == "torch") {
    if (const auto dtype = dtype_by_name(name)) return {Global::Kind::kDtype, *dtype};
  }
  throw Fault{cat("global ", printable(module), ".", printable(name), " is not one that a checkpoint may name")};
}

}  // namespace lockstep::checkpoint
