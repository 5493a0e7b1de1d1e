#include "lockstep/checkpoint/formats/pickle_globals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace lockstep::checkpoint {
namespace {

using testing::HasSubstr;
using Kind = Global::Kind;

TEST(PickleGlobals, KnowsWhatPicklersOfCheckpointsName) {
  const auto kind = [](std::string_view module, std::string_view name) { return find_global(module, name)->kind; };
  EXPECT_EQ(kind("torch._utils", "_rebuild_tensor_v2"), Kind::kRebuildTensor);
  EXPECT_EQ(kind("torch._utils", "_rebuild_parameter_with_state"), Kind::kRebuildParameter);
  EXPECT_EQ(kind("collections", "OrderedDict"), Kind::kDict);
  EXPECT_EQ(kind("torch", "HalfStorage"), Kind::kStorage);
  EXPECT_EQ(kind("torch.storage", "UntypedStorage"), Kind::kStorage);
  EXPECT_EQ(kind("torch", "bfloat16"), Kind::kDtype);
  EXPECT_EQ(kind("builtins", "set"), Kind::kSequence);
  EXPECT_EQ(kind("__builtin__", "tuple"), Kind::kSequence);
  for (const char* module : {"numpy.core.multiarray", "numpy._core.multiarray"}) {
    EXPECT_EQ(kind(module, "_reconstruct"), Kind::kNumpyReconstruct);
    EXPECT_EQ(kind(module, "scalar"), Kind::kNumpyScalar);
  }
  EXPECT_EQ(kind("numpy._core.numeric", "_frombuffer"), Kind::kNumpyFromBuffer);
  EXPECT_EQ(find_global("torch", "HalfStorage")->dtype, at::kHalf);
}

TEST(PickleGlobals, KnowsNothingElse) {
  for (const auto& [module, name] : {std::pair{"builtins", "eval"},
                                     {"__builtin__", "eval"},
                                     {"os", "system"},
                                     {"torch", "load"},
                                     {"torch.hub", "load"},
                                     {"torch._utils", "_rebuild_qtensor"},
                                     {"", ""},
                                     {"numpy", "_reconstruct"},
                                     {"numpy.core.multiarray", "_frombuffer"},
                                     {"numpy.core.numeric", "scalar"},
                                     {"numpy.core.multiarray", "ndarray"},
                                     {"builtins", "getattr"},
                                     {"torch", "QInt8Storage"},
                                     {"os", "float32"}}) {
    EXPECT_FALSE(find_global(module, name)) << module << '.' << name;
  }
}

TEST(PickleGlobals, RefusalsNameTheGlobalAndTheWayOut) {
  EXPECT_EQ(global_fault("os", "system"),
            "global os.system is not one that a checkpoint may name (--ignore-unknown reads the rest without it)");
  EXPECT_THAT(global_fault("a\nb", std::string(1000, 'x')), testing::StartsWith("global a?b.xxx"));
  EXPECT_LT(global_fault(std::string(1000, 'y'), std::string(1000, 'x')).size(), 400u);
}

TEST(PickleGlobals, RefusalsSayWhatKindOfTensorIsNotRead) {
  for (const auto& [name, kind] : {std::pair{"_rebuild_qtensor", "a quantized tensor"},
                                   {"_rebuild_sparse_tensor", "a sparse tensor"},
                                   {"_rebuild_nested_tensor", "a nested tensor"},
                                   {"_rebuild_meta_tensor_no_storage", "a tensor of the meta device"},
                                   {"_rebuild_wrapper_subclass", "a tensor subclass"}}) {
    EXPECT_THAT(global_fault("torch._utils", name), HasSubstr(kind));
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
