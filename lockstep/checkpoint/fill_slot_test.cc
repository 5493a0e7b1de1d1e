#include "lockstep/checkpoint/fill_slot.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "lockstep/base/shared_memory.h"
#include "lockstep/checkpoint/files/byte_sink.h"
#include "lockstep/checkpoint/formats/pt_writer.h"

namespace lockstep::checkpoint {
namespace {

TEST(FillSlot, RanksFillAnImageAndItsSums) {
  const Descriptor memory = Slots::create(2);
  const Slots slots(memory.get());
  const Value state = Dict{{"weight", at::arange(50'000)}, {"step", 3}};
  const PtImage image(state);
  for (const int rank : {1, 0}) {
    fill_slot(slots, 0, image, {}, 2, rank);
    EXPECT_FALSE(slots.newest());
  }
  for (const int rank : {0, 1}) slots.end(0, rank, 3);
  const Slots::Whole whole = slots.newest().value();
  EXPECT_EQ(whole.bytes, image.bytes());
  const auto sums = slots.sums_of(whole);
  EXPECT_EQ(sums.size(), 2U) << "a half of the tensor each";
  StringSink file;
  write_pt(state, file);
  const std::span<char> filled = slots.room(0).first(whole.bytes);
  const std::string rest = complete_archive(filled, {}, ByteSums(sums));
  EXPECT_TRUE(std::string(filled.data(), filled.size()) + rest == file.content);
}

}  // namespace
}  // namespace lockstep::checkpoint
