#include "lockstep/checkpoint/formats/stored_tensor.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>

#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/testing/files.h"
#include "lockstep/checkpoint/formats/value_view.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;
using testing::HasSubstr;

class StoredTensor : public testing::Test {
 protected:
  StoredTensor() { write_pt(root_, path_); }
  // The tensor in the file, which is opened anew.
  at::Tensor opened(const std::string& name) {
    value_ = open_checkpoint(path_);
    return *value_.get_if<Dict>()->find(name)->get_if<at::Tensor>();
  }
  TempDir dir_;
  std::string path_ = dir_ / "a.pt";
  // More than a thread's part, so that several read it.
  const at::Tensor large_ = at::arange(3'000'000, at::kFloat).view({3000, 1000});
  const Dict root_{{"large", large_},
                   {"transposed", large_.t()},
                   {"part", large_.slice(0, 10, 2000)},
                   {"images", at::rand({8, 16, 32, 32}).contiguous(at::MemoryFormat::ChannelsLast)},
                   {"small", at::ones({3})}};
  Value value_;
};

// Turns a bit of the number 2,999,999, which is the last of the large tensor.
void damage(const std::string& path) {
  std::string content = read_file(path);
  const float last = 2'999'999;
  const size_t at = content.find(std::string(reinterpret_cast<const char*>(&last), sizeof last));
  ASSERT_NE(at, std::string::npos);
  content[at] = static_cast<char>(content[at] ^ 1);
  write_file(path, content);
}

TEST_F(StoredTensor, HasAShapeAndNoMemory) {
  const at::Tensor tensor = opened("transposed");
  EXPECT_TRUE(is_stored(tensor));
  EXPECT_EQ(tensor.sizes(), large_.t().sizes());
  EXPECT_EQ(tensor.strides(), large_.t().strides());
  EXPECT_THROW(tensor.sum(), c10::Error);
  EXPECT_THROW(tensor.const_data_ptr(), c10::Error);
  EXPECT_THROW(at::empty_like(tensor).copy_(tensor), c10::Error);
  EXPECT_FALSE(is_stored(opened("small")));
}

TEST_F(StoredTensor, SeveralAreCopiedTogether) {
  opened("large");
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs;
  for (const auto& [key, value] : *value_.get_if<Dict>()) {
    pairs.emplace_back(at::zeros_like(*root_.find(key)->get_if<at::Tensor>()), *value.get_if<at::Tensor>());
  }
  pairs.emplace_back(at::zeros({3000, 1000}, at::kDouble), pairs.front().second);
  copy_elements(pairs);
  size_t number = 0;
  for (const auto& [key, value] : root_) {
    EXPECT_TRUE(pairs[number++].first.equal(*value.get_if<at::Tensor>())) << key_text(key);
  }
  EXPECT_TRUE(pairs.back().first.equal(large_.to(at::kDouble)));
}

// As of weights that two layers share: the order says whose elements stay, not the threads that read.
TEST_F(StoredTensor, OfThoseThatShareMemoryTheLastCounts) {
  write_pt(Dict{{"first", large_}, {"second", large_ + 1}, {"third", large_ + 2}}, path_);
  const at::Tensor shared = at::empty_like(large_);
  const auto first = opened("first"), second = *value_.get_if<Dict>()->find("second")->get_if<at::Tensor>(),
             third = *value_.get_if<Dict>()->find("third")->get_if<at::Tensor>();
  for (const auto& [earlier, last, added] :
       {std::tuple(second, first, 0), std::tuple(first, third, 2), std::tuple(third, second, 1)}) {
    copy_elements({{shared, earlier}, {shared, last}});
    EXPECT_TRUE(shared.equal(large_ + added));
    // Another thread would be through with a few rows long before those that come before them.
    const auto rows = [](const at::Tensor& of) { return of.narrow(0, 2990, 10); };
    copy_elements({{shared, earlier}, {rows(shared), rows(last)}});
    EXPECT_TRUE(rows(shared).equal(rows(large_) + added));
  }
}

TEST_F(StoredTensor, WhatWasCopiedCanBeCopiedOn) {
  const at::Tensor first = at::zeros_like(large_), second = at::zeros_like(large_), stored = opened("large");
  copy_elements({{first, stored}, {second, first}});
  EXPECT_TRUE(first.equal(large_));
  EXPECT_TRUE(second.equal(large_));
}

TEST(TakeElements, GivesTheMemoryItselfWhereOneTensorHasItAlone) {
  const at::Tensor alone = at::rand({3, 4}), shared = at::rand({3, 4}), row = at::rand({2, 4})[1];
  const at::Tensor other = shared.view({4, 3});
  const auto taken = [](const at::Tensor& to, const at::Tensor& from) {
    const at::Tensor before = from.clone();
    take_elements({{to, from}});
    EXPECT_TRUE(to.equal(before.to(to.scalar_type())));
    return to.const_data_ptr() == from.const_data_ptr();
  };
  const at::Tensor owner = at::empty({3, 4}), strided = at::empty_strided({3, 4}, {1, 3});
  EXPECT_TRUE(taken(owner, alone));
  EXPECT_FALSE(taken(at::empty({3, 4}), alone)) << "another tensor has it now";
  EXPECT_FALSE(taken(at::empty({3, 4}), shared));
  EXPECT_FALSE(taken(at::empty({4}), row));
  EXPECT_FALSE(taken(at::empty({3, 4}, at::kDouble), at::rand({3, 4})));
  EXPECT_FALSE(taken(at::empty({4, 3}).t(), at::rand({3, 4})));
  EXPECT_FALSE(taken(at::empty({2, 4})[0], at::rand({4})));
  EXPECT_TRUE(taken(at::empty_strided({3, 4}, {1, 3}), strided.fill_(0.5)));
}

TEST_F(StoredTensor, IsTakenFromTheFile) {
  const at::Tensor to = at::zeros_like(large_), stored = opened("large");
  take_elements({{to, stored}});
  EXPECT_TRUE(to.equal(large_));
  EXPECT_TRUE(is_stored(stored));
}

TEST_F(StoredTensor, IsCopiedStraightIntoEqualMemory) {
  for (const auto& [key, value] : root_) {
    const at::Tensor stored = opened(key_text(key)), to = at::empty_like(*value.get_if<at::Tensor>());
    const int64_t version = to._version();
    copy_elements(to, stored);
    EXPECT_TRUE(to.equal(*value.get_if<at::Tensor>())) << key_text(key);
    EXPECT_GT(to._version(), version) << "an autograd graph must see the write";
    EXPECT_EQ(is_stored(stored), key_text(key) != "small");
  }
}

TEST_F(StoredTensor, IsConvertedOnTheWay) {
  for (const auto& [key, value] : root_) {
    const at::Tensor& expected = *value.get_if<at::Tensor>();
    const at::Tensor doubles = at::empty(expected.sizes(), at::kDouble);
    copy_elements(doubles, opened(key_text(key)));
    EXPECT_TRUE(doubles.equal(expected.to(at::kDouble))) << key_text(key);
    const at::Tensor strided =
        at::empty(expected.numel() * 2).slice(0, 0, expected.numel() * 2, 2).view(expected.sizes());
    copy_elements(strided, opened(key_text(key)));
    EXPECT_TRUE(strided.equal(expected)) << key_text(key);
  }
}

TEST_F(StoredTensor, TensorsOfOneStorageShareItInMemory) {
  const at::Tensor large = opened("large");
  const at::Tensor transposed = *value_.get_if<Dict>()->find("transposed")->get_if<at::Tensor>();
  bring_into_memory(large);
  EXPECT_TRUE(large.equal(large_));
  const at::Tensor copy = at::empty_like(large_.t());
  copy_elements(copy, transposed);
  EXPECT_TRUE(copy.equal(large_.t()));
  bring_into_memory(transposed);
  large.fill_(7);
  EXPECT_TRUE((transposed == 7).all().item<bool>());
}

TEST_F(StoredTensor, AViewBringsItIntoMemory) {
  opened("large");
  EXPECT_TRUE(ValueView(value_, "file")["part"].tensor().equal(large_.slice(0, 10, 2000)));
  EXPECT_TRUE(is_stored(*value_.get_if<Dict>()->find("large")->get_if<at::Tensor>()));
}

TEST_F(StoredTensor, OutlivesTheFilesName) {
  const at::Tensor stored = opened("large"), to = at::empty_like(large_);
  write_pt(Dict{{"large", at::zeros_like(large_)}}, path_);
  std::filesystem::remove(path_);
  value_ = Value();
  copy_elements(to, stored);
  EXPECT_TRUE(to.equal(large_));
}

TEST_F(StoredTensor, DamageIsFoundWhenTheFileIsOpened) {
  damage(path_);
  EXPECT_THAT(error_of<DataError>([&] { open_checkpoint(path_); }),
              HasSubstr("a.pt: archive/data/0: damaged (CRC error)"));
  EXPECT_THAT(error_of<DataError>([&] { read_checkpoint(path_); }),
              HasSubstr("a.pt: archive/data/0: damaged (CRC error)"));
}

class CheckedOnTheWay : public StoredTensor {
 protected:
  CheckedOnTheWay() {
    write_pt(Dict{{"large", large_}, {"other", large_ + 0.5}, {"viewed", other_}, {"view", other_.t()}}, path_);
  }
  at::Tensor opened_quickly(const std::string& name) {
    value_ = open_checkpoint(path_, {.checks_on_the_way = true});
    return *value_.get_if<Dict>()->find(name)->get_if<at::Tensor>();
  }
  const at::Tensor other_ = large_ - 1e7;
};

TEST_F(CheckedOnTheWay, WholeFilesAreRead) {
  for (const char* name : {"large", "other", "viewed", "view"}) {
    opened("large");
    const at::Tensor expected = ValueView(value_, "file")[name].tensor();
    const at::Tensor stored = opened_quickly(name), to = at::zeros_like(expected), doubles = to.to(at::kDouble);
    copy_elements({{to, stored}, {doubles, stored}});
    EXPECT_TRUE(to.equal(expected)) << name;
    EXPECT_TRUE(doubles.equal(expected.to(at::kDouble))) << name;
    EXPECT_TRUE(is_stored(stored));
    // A part of a tensor brings the whole of it, which alone can be compared.
    const at::Tensor rows = stored.narrow(0, 10, 20), few = at::zeros_like(expected.narrow(0, 10, 20));
    copy_elements(few, rows);
    EXPECT_TRUE(few.equal(expected.narrow(0, 10, 20))) << name;
    const at::Tensor again = opened_quickly(name);
    value_ = Value();
    copy_elements({{to.zero_(), again}, {few.zero_(), again.narrow(0, 10, 20)}, {doubles.zero_(), again}});
    EXPECT_TRUE(to.equal(expected) && few.equal(expected.narrow(0, 10, 20)) && doubles.equal(to.to(at::kDouble)));
    opened_quickly(name);
    EXPECT_TRUE(ValueView(value_, "file")[name].tensor().equal(expected)) << name;
  }
}

TEST_F(CheckedOnTheWay, DamageLeavesNoNumbersBehind) {
  damage(path_);
  const at::Tensor sound = at::zeros_like(large_), damaged = at::zeros_like(large_),
                   converted = at::zeros(large_.sizes(), at::kDouble), counts = at::ones({3}, at::kLong);
  const at::Tensor stored = opened_quickly("large"),
                   other = *value_.get_if<Dict>()->find("other")->get_if<at::Tensor>();
  const auto is_refused = [&](const std::vector<std::pair<at::Tensor, at::Tensor>>& pairs) {
    EXPECT_THAT(error_of<DataError>([&] { copy_elements(pairs); }),
                HasSubstr("a.pt: archive/data/0: damaged (CRC error); use another copy of the file"));
    for (const auto& [to, from] : pairs) EXPECT_TRUE(!to.is_floating_point() || to.isnan().all().item<bool>());
  };
  is_refused({{counts, at::zeros({3}, at::kLong)}, {sound, other}, {damaged, stored}});
  is_refused({{converted, stored}});
  is_refused({{at::zeros({20, 1000}), stored.narrow(0, 10, 20)}});
  EXPECT_THAT(error_of<DataError>([&] { bring_into_memory(stored); }), HasSubstr("damaged"));
  EXPECT_THAT(error_of<DataError>([&] { verify_stored(value_, kEverything); }), HasSubstr("damaged"));
  // What is not asked for is not read.
  copy_elements(sound, other);
  EXPECT_TRUE(sound.equal(large_ + 0.5));
}

TEST_F(CheckedOnTheWay, WhatSeveralTensorsShareIsComparedBefore) {
  write_pt(Dict{{"large", large_}, {"transposed", large_.t()}}, path_);
  damage(path_);
  EXPECT_THAT(error_of<DataError>([&] { opened_quickly("large"); }), HasSubstr("damaged (CRC error)"));
}

TEST_F(StoredTensor, AFileThatIsCutMeanwhileIsAnError) {
  const at::Tensor stored = opened("large");
  std::filesystem::resize_file(path_, 5'000'000);
  EXPECT_THAT(error_of<DataError>([&] { copy_elements(at::empty_like(large_), stored); }), HasSubstr("cut short"));
  EXPECT_THAT(error_of<DataError>([&] { bring_into_memory(stored); }), HasSubstr("cut short"));
}

}  // namespace
}  // namespace lockstep::checkpoint
