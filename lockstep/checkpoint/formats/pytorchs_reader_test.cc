// libtorch's own reader of archives, the one behind torch.load, on the files that we write.
#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/files/zip_layout.h"
#include "lockstep/checkpoint/formats/pt_entries.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;

// It takes the folder's name from the first entry, which is a tensor's.
TEST(PyTorchsReader, FindsEveryEntryWhereTheTensorsComeFirst) {
  const TempDir dir;
  const at::Tensor weight = at::arange(1000, at::kFloat);
  const Value value = Dict{{"weight", weight}, {"bias", at::ones({3})}, {"step", 7}};
  write_pt(value, dir / "e.pt");
  caffe2::serialize::PyTorchStreamReader reader(dir / "e.pt");
  const StoragePlan plan(value);
  for (const PtEntry& entry : pt_entries(value, plan)) {
    const std::string name = entry.name.substr(entry.name.find('/') + 1);
    ASSERT_TRUE(reader.hasRecord(name)) << name;
    const auto [data, bytes] = reader.getRecord(name);
    const std::string expected(entry.storage ? plan.storages()[*entry.storage].bytes() : entry.text);
    EXPECT_TRUE(std::string(static_cast<const char*>(data.get()), bytes) == expected) << name;
    EXPECT_EQ(reader.getRecordOffset(name) % ZipLayout::kAlignment, 0U);
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
