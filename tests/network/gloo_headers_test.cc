// c10d's Gloo header is compiled here with the types of Debian's gloo (2022), libtorch's own code with those of its
// own. Only pointers to them cross: these tests hold that what libtorch makes is as large as we think, and lies as we
// read it.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <limits>
#include <new>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <vector>

namespace lockstep::network {
namespace {

using Group = c10d::ProcessGroupGloo;

static_assert(sizeof(std::shared_ptr<gloo::transport::Device>) == 2 * sizeof(void*), "it crosses by value");

// What the heap gives to an object of this size.
size_t heap_size(size_t bytes) {
  void* const memory = ::operator new(bytes);
  const size_t size = malloc_usable_size(memory);
  ::operator delete(memory);
  return size;
}

TEST(GlooHeaders, FitTheOptionsThatLibtorchMakes) {
  const std::chrono::milliseconds timeout{1234};
  const auto options = Group::Options::create_default(timeout);
  // The heap gives an object a little more now and then, where the rest of a hole is too small for another.
  size_t least = malloc_usable_size(options.get());
  std::vector<c10::intrusive_ptr<Group::Options>> more;
  for (int i = 0; i < 8; ++i) {
    more.push_back(Group::Options::create_default(timeout));
    least = std::min(least, malloc_usable_size(more.back().get()));
  }
  EXPECT_EQ(least, heap_size(sizeof(Group::Options)));
  EXPECT_EQ(options->timeout, timeout);
  EXPECT_EQ(options->backend, "gloo");
  ASSERT_EQ(options->devices.size(), 1u);
  EXPECT_NE(options->devices[0], nullptr);
  EXPECT_EQ(options->threads, Group::Options(timeout).threads);
}

TEST(GlooHeaders, FitTheGroupThatLibtorchMakes) {
  auto options = Group::Options::create(std::chrono::milliseconds(5000));
  options->devices.push_back(Group::createDeviceForInterface("lo"));
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto ours = c10::make_intrusive<Group>(store, 0, 1, options);
  EXPECT_EQ(ours->getOptions(), options);
  std::vector<c10::intrusive_ptr<c10d::Backend>> theirs;  // made in libtorch
  size_t least = std::numeric_limits<size_t>::max();
  for (int i = 0; i < 8; ++i) {
    theirs.push_back(ours->split(store, {0}, options));
    ASSERT_NE(dynamic_cast<Group*>(theirs.back().get()), nullptr);
    least = std::min(least, malloc_usable_size(theirs.back().get()));
  }
  EXPECT_EQ(least, heap_size(sizeof(Group)));
}

}  // namespace
}  // namespace lockstep::network
