#include "lockstep/checkpoint/formats/pickle_calls.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/formats/byte_cursor.h"

namespace lockstep::checkpoint {
namespace {

using testing::HasSubstr;
using Kind = Container::Kind;

// A source of storages that remembers what it was asked for.
class FakeStorages : public StorageSource {
 public:
  c10::Storage storage(const StorageRequest& request) override {
    asked.push_back({std::string(request.key), request.bytes});
    return allocate_storage(request.bytes);
  }
  std::vector<std::pair<std::string, int64_t>> asked;
};

class PickleCallsTest : public testing::Test {
 protected:
  Item tuple(const std::vector<Item>& items) { return heap_.add(Kind::kTuple, items); }
  Item list(const std::vector<Item>& items) { return heap_.add(Kind::kList, items); }
  Item storage_text() const { return Text{{0, 7}}; }
  Item key() const { return Text{{7, 1}}; }
  Item cpu() const { return Text{{8, 3}}; }

  Item id(Item elements) {
    return tuple({storage_text(), Global{Global::Kind::kStorage, at::kFloat}, key(), cpu(), elements});
  }
  Item storage(int64_t elements) { return load_persistent(heap_, id(elements), &storages_); }

  std::string call_fault(Global::Kind kind, std::vector<Item> arguments) {
    try {
      call(heap_, Global{kind}, tuple(std::move(arguments)));
    } catch (const Fault& fault) {
      return fault.text;
    }
    return "no fault";
  }
  std::string id_fault(const Item& item, StorageSource* source) {
    try {
      load_persistent(heap_, item, source);
    } catch (const Fault& fault) {
      return fault.text;
    }
    return "no fault";
  }

  MemoryBudget budget_{1 << 20};
  const PickleBytes bytes_{"storage0cpuutf8latin1"};
  Heap heap_{bytes_, budget_};
  FakeStorages storages_;
};

TEST_F(PickleCallsTest, BuildsTensorsOverStorages) {
  const Item result = call(heap_, Global{Global::Kind::kRebuildTensor},
                           tuple({storage(10), int64_t{2}, tuple({int64_t{2}, int64_t{3}}),
                                  tuple({int64_t{1}, int64_t{2}}), false, heap_.add(Kind::kDict)}));
  const at::Tensor& tensor = heap_.tensors[std::get<TensorRef>(result).index];
  EXPECT_EQ(tensor.sizes(), at::IntArrayRef({2, 3}));
  EXPECT_EQ(tensor.strides(), at::IntArrayRef({1, 2}));
  EXPECT_EQ(tensor.storage_offset(), 2);
  EXPECT_EQ(tensor.scalar_type(), at::kFloat);
  EXPECT_EQ(storages_.asked.front(), std::pair(std::string("0"), int64_t{40}));
}

TEST_F(PickleCallsTest, VersionThreeNamesItsType) {
  const Item result = call(heap_, Global{Global::Kind::kRebuildTensorV3},
                           tuple({storage(10), int64_t{0}, tuple({int64_t{20}}), tuple({int64_t{1}}), false,
                                  heap_.add(Kind::kDict), Global{Global::Kind::kDtype, at::kUInt16}}));
  EXPECT_EQ(heap_.tensors[std::get<TensorRef>(result).index].scalar_type(), at::kUInt16);
}

TEST_F(PickleCallsTest, TensorsStayInsideTheirStorage) {
  EXPECT_THAT(
      call_fault(Global::Kind::kRebuildTensor, {storage(10), int64_t{1}, tuple({int64_t{10}}), tuple({int64_t{1}})}),
      HasSubstr("reaches element 10"));
  EXPECT_THAT(call_fault(Global::Kind::kRebuildTensor,
                         {storage(10), int64_t{0}, tuple({int64_t{1} << 60}), tuple({int64_t{0}})}),
              HasSubstr("too large"));
}

TEST_F(PickleCallsTest, ArgumentsAreChecked) {
  EXPECT_EQ(call_fault(Global::Kind::kRebuildTensor, {}), "a call with only 0 arguments");
  EXPECT_EQ(call_fault(Global::Kind::kRebuildTensor, {int64_t{3}}), "argument 0 of a call is not a storage");
  EXPECT_EQ(call_fault(Global::Kind::kRebuildTensor, {storage(1), true}), "argument 1 of a call is not a whole number");
  EXPECT_EQ(call_fault(Global::Kind::kRebuildTensor, {storage(1), int64_t{0}, None{}, None{}}),
            "argument 2 of a call is not a tuple");
  EXPECT_EQ(call_fault(Global::Kind::kRebuildParameter, {int64_t{0}}), "argument 0 of a call is not a tensor");
  EXPECT_EQ(call_fault(Global::Kind::kDtype, {}), "a call of something that is no function");
  EXPECT_EQ(call_fault(Global::Kind::kEncode, {storage_text(), Text{{11, 4}}}), "bytes in the encoding utf8");
  EXPECT_EQ(call_fault(Global::Kind::kEncode, {storage_text(), Text{{15, 6}}}), "no fault");
  EXPECT_EQ(call_fault(Global::Kind::kSequence, {int64_t{0}}), "a size or set made from something else than a list");
}

TEST_F(PickleCallsTest, DictsAreMadeFromPairs) {
  const Item pair = list({key(), int64_t{1}});
  const Item pairs = list({pair, tuple({cpu(), int64_t{2}})});
  const Item dict = call(heap_, Global{Global::Kind::kDict}, tuple({pairs}));
  ASSERT_NE(heap_.container(dict, Kind::kDict), nullptr);
  EXPECT_EQ(heap_.container(dict, Kind::kDict)->items.size(), 4u);
  EXPECT_EQ(call_fault(Global::Kind::kDict, {list({int64_t{1}})}), "a dict made from something else than pairs");
}

TEST_F(PickleCallsTest, ParametersAreReadAsTheirTensors) {
  const Item tensor = heap_.add(at::Tensor(at::ones({2})));
  const auto index = [&](Global::Kind kind, const std::vector<Item>& arguments) {
    return std::get<TensorRef>(call(heap_, Global{kind}, tuple(arguments))).index;
  };
  EXPECT_EQ(index(Global::Kind::kRebuildParameter, {tensor, true, heap_.add(Kind::kDict)}), 0u);
  EXPECT_EQ(index(Global::Kind::kRebuildFromType,
                  {Global{Global::Kind::kRebuildParameter}, Global{Global::Kind::kTensorClass},
                   tuple({tensor, true, heap_.add(Kind::kDict)}), heap_.add(Kind::kDict)}),
            0u);
  EXPECT_EQ(index(Global::Kind::kRebuildFromHost, {tensor, Global{Global::Kind::kDtype, at::kFloat}, cpu(), true}), 0u);
  EXPECT_EQ(call_fault(Global::Kind::kRebuildFromHost, {tensor, Global{Global::Kind::kDtype, at::kHalf}, cpu(), true}),
            "a tensor of an accelerator whose copy has another element type");
}

TEST_F(PickleCallsTest, TensorsAreRebuiltByPyTorchsFunctionsAlone) {
  const Item plain = Global{Global::Kind::kTensorClass};
  for (const Item& function : {Item(Global{Global::Kind::kRebuildFromType}), Item(Global{Global::Kind::kDict})}) {
    EXPECT_EQ(call_fault(Global::Kind::kRebuildFromType, {function, plain, tuple({}), None{}}),
              "a tensor rebuilt by something else than PyTorch's functions");
  }
  EXPECT_EQ(call_fault(Global::Kind::kRebuildFromType,
                       {Global{Global::Kind::kRebuildTensor}, Global{Global::Kind::kDict}, tuple({}), None{}}),
            "a tensor rebuilt by something else than PyTorch's functions");
}

TEST_F(PickleCallsTest, WhatComesOfUnknownThingsIsUnknown) {
  heap_.ignore_unknown = true;
  const Unknown unknown = heap_.add_unknown("a.B");
  const auto is_unknown = [&](const Item& function, const std::vector<Item>& arguments) {
    return std::holds_alternative<Unknown>(call(heap_, function, tuple(arguments)));
  };
  EXPECT_TRUE(is_unknown(unknown, {}));
  EXPECT_TRUE(is_unknown(unknown, {int64_t{1}, unknown}));
  EXPECT_TRUE(is_unknown(Global{Global::Kind::kRebuildTensor}, {unknown, int64_t{0}}));
  EXPECT_TRUE(is_unknown(Global{Global::Kind::kRebuildParameter}, {unknown, true}));
  EXPECT_TRUE(is_unknown(Global{Global::Kind::kRebuildFromType},
                         {Global{Global::Kind::kRebuildTensor}, unknown, tuple({}), None{}}));
  EXPECT_TRUE(is_unknown(Global{Global::Kind::kNumpyReconstruct}, {unknown}));
  EXPECT_FALSE(is_unknown(Global{Global::Kind::kDefaultDict}, {unknown}));
  EXPECT_TRUE(std::holds_alternative<Unknown>(
      load_persistent(heap_, tuple({storage_text(), unknown, key(), cpu(), int64_t{1}}), &storages_)));
  set_state(heap_, unknown, heap_.add(Kind::kDict));
  EXPECT_TRUE(storages_.asked.empty());
}

TEST_F(PickleCallsTest, PersistentIdsNameStorages) {
  EXPECT_EQ(id_fault(id(int64_t{-1}), &storages_), "a storage of -1 elements");
  EXPECT_EQ(id_fault(id(std::numeric_limits<int64_t>::max()), &storages_), "a storage of 9223372036854775807 elements");
  EXPECT_EQ(id_fault(id(int64_t{1}), nullptr), "a tensor where none may be");
  EXPECT_EQ(id_fault(tuple({cpu()}), &storages_), "a persistent id of the kind cpu");
  EXPECT_EQ(id_fault(cpu(), &storages_), "a call without a tuple of arguments");
  EXPECT_TRUE(storages_.asked.empty());
}

}  // namespace
}  // namespace lockstep::checkpoint
