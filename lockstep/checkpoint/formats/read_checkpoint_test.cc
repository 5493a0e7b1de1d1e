#include "lockstep/checkpoint/formats/read_checkpoint.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/safetensors_writer.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"
#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;
using testing::HasSubstr;
namespace fs = std::filesystem;

TEST(ReadCheckpoint, GoesByTheContentAndNotByTheName) {
  const TempDir dir;
  const Dict tensors{{"w", at::ones({2})}};
  write_safetensors(tensors, dir / "a.pt");
  fs::copy_file(testdata() + "/written_by_pytorch.pt", dir / "b.safetensors");
  fs::copy_file(testdata() + "/written_by_pytorch_legacy.pt", dir / "c");
  EXPECT_TRUE(read_checkpoint(dir / "a.pt").get_if<Dict>()->contains("w"));
  for (const char* name : {"b.safetensors", "c"}) {
    EXPECT_EQ(describe(read_checkpoint(dir / name)).dump(), describe(read_pt(dir / name)).dump()) << name;
  }
}

TEST(ReadCheckpoint, SaysWhatStandsThereInstead) {
  const TempDir dir;
  write_file(dir / "a.pt", "<html>");
  EXPECT_EQ(error_of<DataError>([&] { read_checkpoint(dir / "a.pt"); }),
            dir / "a.pt: neither a checkpoint of torch.save, safetensors nor of Paddle: it starts with \"<html>\"");
  EXPECT_THAT(error_of<DataError>([&] { open_checkpoint(dir / "none"); }), HasSubstr("there is no such file"));
}

// All the same as read_checkpoint(), once its tensors are in memory.
TEST(OpenCheckpoint, HoldsWhatIsRead) {
  for (const char* name : {"/written_by_pytorch.pt", "/written_by_pytorch_legacy.pt", "/written_by_lockstep.pt"}) {
    const Value opened = open_checkpoint(testdata() + name);
    verify_stored(opened, kEverything);
    EXPECT_EQ(describe(opened).dump(), describe(read_pt(testdata() + name)).dump()) << name;
  }
}

TEST(OpenCheckpoint, BringsTheStatesOfOptimizersIntoMemoryIfAsked) {
  const TempDir dir;
  const at::Tensor weight = at::rand({300, 300}), moment = at::rand({300, 300});
  const Dict optimizer{{"state", Dict{{"exp_avg", moment}}}, {"param_groups", List{}}};
  write_pt(Dict{{"model", Dict{{"state", weight}}}, {"amp", Dict{{"inner", optimizer}}}}, dir / "a.pt");
  const auto tensor = [](const Value& root, const std::vector<const char*>& path) {
    const Value* at = &root;
    for (const char* key : path) at = at->get_if<Dict>()->find(key);
    return *at->get_if<at::Tensor>();
  };
  for (const bool asked : {false, true}) {
    const Value root = open_checkpoint(dir / "a.pt", {.takes_optimizers = asked});
    EXPECT_TRUE(is_stored(tensor(root, {"model", "state"})));
    const at::Tensor read = tensor(root, {"amp", "inner", "state", "exp_avg"});
    EXPECT_EQ(is_stored(read), !asked);
    if (asked) EXPECT_TRUE(read.equal(moment));
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
