#include "lockstep/checkpoint/formats/storage_source.h"

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <cstring>

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {
namespace {

TEST(AllocateStorage, HoldsWhatWasAskedFor) {
  EXPECT_EQ(allocate_storage(40).nbytes(), 40u);
  EXPECT_EQ(allocate_storage(0).nbytes(), 0u);
}

class NoMemory : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override { TORCH_CHECK(false, "can't allocate ", bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};

TEST(AllocateStorage, SaysWhenThereIsNoMemory) {
  NoMemory none;
  c10::Allocator* const before = c10::GetCPUAllocator();
  c10::SetCPUAllocator(&none);
  EXPECT_THROW(allocate_storage(40), IoError);
  c10::SetCPUAllocator(before);
}

}  // namespace
}  // namespace lockstep::checkpoint
