#include "lockstep/checkpoint/formats/storage_plan.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {
namespace {

TEST(StoragePlan, TensorsOfOneStorageShareIt) {
  const at::Tensor whole = at::arange(24, at::kFloat);
  const at::Tensor part = whole.slice(0, 4, 8);
  const Value root = Dict{{"a", whole}, {"b", List{part, at::ones({2})}}};
  const StoragePlan plan(root);
  ASSERT_EQ(plan.storages().size(), 2u);
  EXPECT_EQ(plan.storages()[0].elements(), 24);
  EXPECT_EQ(plan.view(part).storage, plan.view(whole).storage);
  EXPECT_EQ(plan.view(part).offset, 4);
  EXPECT_EQ(plan.storages()[0].bytes().data(), whole.const_data_ptr());  // borrowed
}

TEST(StoragePlan, KeepsOnlyTheWindowThatTensorsReach) {
  const at::Tensor base = at::arange(1000, at::kFloat);
  const at::Tensor a = base.slice(0, 100, 110);
  const at::Tensor b = base.slice(0, 104, 130, 5);
  const StoragePlan plan(List{a, b});
  ASSERT_EQ(plan.storages().size(), 1u);
  EXPECT_EQ(plan.storages()[0].begin, 100);
  EXPECT_EQ(plan.storages()[0].end, 130);
  EXPECT_EQ(plan.view(b).offset, 4);
}

// As DistributedDataParallel packs buffers, in pipelines each rank others.
TEST(StoragePlan, TensorsBesideEachOtherHaveStoragesOfTheirOwn) {
  const at::Tensor packed = at::arange(20, at::kFloat);
  const at::Tensor last = packed.slice(0, 12, 16), first = packed.slice(0, 0, 4), next = packed.slice(0, 4, 8);
  const StoragePlan plan(List{last, first, next, packed.slice(0, 2, 4)});
  ASSERT_EQ(plan.storages().size(), 3u);
  const StoragePlan apart(List{last.clone(), first.clone(), next.clone()});
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(plan.storages()[i].bytes(), apart.storages()[i].bytes()) << i;
  EXPECT_EQ(plan.view(packed.slice(0, 2, 4)).storage, 1u);
  EXPECT_EQ(plan.view(packed.slice(0, 2, 4)).offset, 2);
}

TEST(StoragePlan, TensorsWithoutElementsTakeNothing) {
  const at::Tensor base = at::arange(10, at::kFloat);
  const at::Tensor empty = base.slice(0, 8, 8);
  const at::Tensor part = base.slice(0, 0, 3);
  const StoragePlan plan(List{empty, part, at::empty({0, 3})});
  ASSERT_EQ(plan.storages().size(), 2u);
  EXPECT_EQ(plan.storages()[0].end, 3);
  EXPECT_EQ(plan.view(empty).offset, 0);
  EXPECT_TRUE(plan.storages()[1].bytes().empty());
}

TEST(StoragePlan, EachTypeHasAStorageOfItsOwn) {
  const at::Tensor floats = at::ones({4});
  const StoragePlan plan(List{floats, floats.view(at::kInt)});
  EXPECT_EQ(plan.storages().size(), 2u);
}

TEST(StoragePlan, ExpandedTensorsTakeOneElement) {
  const StoragePlan plan(at::ones({1}).expand({1000}));
  EXPECT_EQ(plan.storages()[0].elements(), 1);
}

TEST(StoragePlan, RefusesWhatNoStorageHolds) {
  EXPECT_THROW(StoragePlan{List{at::Tensor()}}, BugError);
  EXPECT_THROW(StoragePlan{List{at::ones({2, 2}).to_sparse()}}, BugError);
}

}  // namespace
}  // namespace lockstep::checkpoint
