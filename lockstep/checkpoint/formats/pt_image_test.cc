#include "lockstep/checkpoint/formats/pt_image.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/files/byte_sink.h"
#include "lockstep/checkpoint/formats/pt_writer.h"

namespace lockstep::checkpoint {
namespace {

at::Tensor numbers(at::IntArrayRef sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return at::arange(count, at::kFloat).view(sizes) * 0.5;
}

// Two of its tensors are those that a sharded optimizer would hold.
struct Example {
  at::Tensor weight = numbers({40, 33}), moment = numbers({5000}) + 1;
  at::Tensor laid_out = numbers({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);

  Value tree(const at::Tensor& of_moment, const at::Tensor& of_laid_out) const {
    return Dict{{"model", Dict{{"weight", weight},
                               {"transposed", weight.t()},
                               {"part", weight.slice(0, 3, 7)},
                               {"as_ints", weight.view(at::kInt)},
                               {"empty", at::zeros({0, 3})},
                               {"window", at::arange(1000, at::kLong).slice(0, 500, 520, 3)},
                               {"half", weight.to(at::kHalf)},
                               {"number", at::full({}, 7, at::kLong)}}},
                {"state", List{of_moment, of_laid_out, of_moment, 0.25, "text"}},
                {"step", 12}};
  }
  Value whole() const { return tree(moment, laid_out); }
};

std::string file_of(const Value& value) {
  StringSink sink;
  write_pt(value, sink);
  return sink.content;
}

// What `ranks` ranks make of it together; the optimizer's tensors are cut into uneven parts.
std::string filled(const Example& example, int ranks, bool sharded) {
  std::string bytes;
  std::vector<ByteSum> sums;
  for (int rank = ranks - 1; rank >= 0; --rank) {
    std::vector<OwnSlice> slices;
    at::Tensor moment = example.moment, laid_out = example.laid_out;
    const auto shard = [&](at::Tensor& tensor, const at::Tensor& memory) {
      const int64_t first = memory.numel() * rank / ranks / 16 * 16;
      const int64_t end = rank + 1 == ranks ? memory.numel() : memory.numel() * (rank + 1) / ranks / 16 * 16;
      const at::Tensor own = memory.slice(0, first, end).clone();
      tensor = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
      slices.push_back({tensor, own, first});
    };
    if (sharded) {
      shard(moment, example.moment);
      shard(laid_out, example.laid_out.permute({0, 2, 3, 1}).reshape({-1}));
    }
    const Value tree = example.tree(moment, laid_out);
    const PtImage image(tree);
    bytes.resize(image.bytes(), '#');
    const auto own = image.copy_share(slices, ranks, rank, bytes.data());
    EXPECT_LE(own.size(), image.most_sums());
    sums.insert(sums.end(), own.begin(), own.end());
    EXPECT_EQ(image.layout_hash(), PtImage(example.whole()).layout_hash());
    EXPECT_EQ(image.file_bytes(), file_of(example.whole()).size());
  }
  std::string without_sums = bytes;
  const std::string rest = complete_archive(bytes, {}, ByteSums(std::move(sums)));
  EXPECT_TRUE(complete_archive(without_sums) == rest) << "the ranks' sums are the bytes'";
  return bytes + rest;
}

TEST(PtImage, IsTheFileThatTheWriterWritesAtAnyNumberOfRanks) {
  const Example example;
  for (const int ranks : {1, 2, 3, 4}) {
    for (const bool sharded : {false, true}) {
      EXPECT_TRUE(filled(example, ranks, sharded) == file_of(example.whole())) << ranks << ' ' << sharded;
    }
  }
}

TEST(PtImage, ATreeWithoutTensors) {
  const Value value = Dict{{"step", 3}};
  const PtImage image(value);
  std::string bytes(image.bytes(), '#');
  image.copy_share({}, 1, 0, bytes.data());
  const std::string rest = complete_archive(bytes);
  EXPECT_TRUE(bytes + rest == file_of(value));
}

TEST(PtImage, PlacesDependOnSizesAlone) {
  const PtImage first(Dict{{"w", at::zeros({9})}, {"loss", 0.5}, {"step", 9}});
  const PtImage later(Dict{{"w", at::ones({9})}, {"loss", 0.25}, {"step", 70'000}});
  const PtImage other(Dict{{"w", at::zeros({10})}, {"loss", 0.5}, {"step", 9}});
  EXPECT_EQ(first.layout_hash(), later.layout_hash());
  EXPECT_NE(first.layout_hash(), other.layout_hash());
}

TEST(PtImage, ATensorWithoutBytesIsABug) {
  const Value value = Dict{{"w", at::empty({9}, at::TensorOptions().device(at::kMeta))}};
  std::string bytes(PtImage(value).bytes(), '#');
  EXPECT_THROW(PtImage(value).copy_share({}, 1, 0, bytes.data()), BugError);
  EXPECT_THROW(file_of(value), BugError);
}

}  // namespace
}  // namespace lockstep::checkpoint
