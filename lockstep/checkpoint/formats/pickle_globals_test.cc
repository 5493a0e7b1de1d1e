#include "lockstep/checkpoint/formats/pickle_globals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lockstep/checkpoint/formats/byte_cursor.h"

namespace lockstep::checkpoint {
namespace {

std::string refusal(std::string_view module, std::string_view name) {
  try {
    find_global(module, name);
  } catch (const Fault& fault) {
    return fault.text;
  }
  return "accepted";
}

TEST(PickleGlobals, KnowsWhatTorchSaveNames) {
  EXPECT_EQ(find_global("torch._utils", "_rebuild_tensor_v2").kind, Global::Kind::kRebuildTensor);
  EXPECT_EQ(find_global("collections", "OrderedDict").kind, Global::Kind::kDict);
  EXPECT_EQ(find_global("torch", "HalfStorage").dtype, at::kHalf);
  EXPECT_EQ(find_global("torch", "HalfStorage").kind, Global::Kind::kStorage);
  EXPECT_EQ(find_global("torch.storage", "UntypedStorage").kind, Global::Kind::kStorage);
  EXPECT_EQ(find_global("torch", "bfloat16").kind, Global::Kind::kDtype);
}

TEST(PickleGlobals, RefusesEverythingElseByName) {
  EXPECT_EQ(refusal("os", "system"), "global os.system is not one that a checkpoint may name");
  for (const auto& [module, name] : {std::pair{"builtins", "eval"},
                                     {"__builtin__", "eval"},
                                     {"torch", "load"},
                                     {"torch.hub", "load"},
                                     {"torch._utils", "_rebuild_qtensor"},
                                     {"", ""},
                                     {"numpy.core.multiarray", "_reconstruct"},
                                     {"os", "float32"}}) {
    EXPECT_THAT(refusal(module, name), testing::HasSubstr("not one that a checkpoint may name"));
  }
  EXPECT_THAT(refusal("a\nb", std::string(1000, 'x')), testing::StartsWith("global a?b.xxx"));
}

}  // namespace
}  // namespace lockstep::checkpoint
