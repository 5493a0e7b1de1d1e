#include "lockstep/nn/thread_generator.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "lockstep/nn/checkpoint.h"

namespace lockstep::nn {
namespace {

using Tensors = std::vector<at::Tensor>;

Tensors drawn() {
  const at::Tensor x = at::ones({40});
  return {at::rand({3}),
          at::randn({3}),
          at::dropout(x, 0.5, true),
          at::randperm(20),
          at::randn_like(x),
          at::multinomial(at::ones({5}), 3),
          at::empty({3}).exponential_(),
          at::randint(100, {4})};
}

Tensors drawn_with(uint64_t seed) {
  at::Generator generator;
  const ThreadGenerator own(generator, [seed] { return seed; });
  return drawn();
}

void expect_equal(const Tensors& a, const Tensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].equal(b[i])) << i;
}

TEST(ThreadGenerator, DrawsWhatTheSeedGivesAndLeavesTheProcessesGeneratorAlone) {
  at::manual_seed(9);
  const at::Tensor next = at::rand({3});
  at::manual_seed(7);
  const Tensors expected = drawn();
  at::manual_seed(9);
  expect_equal(drawn_with(7), expected);
  EXPECT_TRUE(at::rand({3}).equal(next));
}

TEST(ThreadGenerator, ThreadsThatDrawAtOnceGetTheirOwn) {
  std::vector<Tensors> expected, found(4);
  for (uint64_t i = 0; i < 4; ++i) expected.push_back(drawn_with(i));
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 4; ++i) threads.emplace_back([&, i] { found[i] = drawn_with(i); });
    for (auto& thread : threads) thread.join();
    for (size_t i = 0; i < 4; ++i) expect_equal(found[i], expected[i]);
  }
}

TEST(ThreadGenerator, IsSeededAtItsFirstDrawAndGoesOn) {
  at::Generator generator;
  int seeds = 0;
  const auto seed = [&seeds] { return static_cast<uint64_t>(++seeds); };
  { const ThreadGenerator own(generator, seed); }
  EXPECT_EQ(seeds, 0);
  Tensors parts;
  for (int i = 0; i < 2; ++i) {
    const ThreadGenerator own(generator, seed);
    parts.push_back(at::rand({16}));
  }
  EXPECT_EQ(seeds, 1);
  at::manual_seed(1);
  EXPECT_TRUE(parts[0].equal(at::rand({16})));
  EXPECT_TRUE(parts[1].equal(at::rand({16})));
}

TEST(ThreadGenerator, ScopesNestAndAGivenGeneratorCounts) {
  at::Generator outer, inner;
  const ThreadGenerator of_outer(outer, [] { return uint64_t{1}; });
  {
    const ThreadGenerator of_inner(inner, [] { return uint64_t{2}; });
    EXPECT_EQ(cpu_generator(), inner);
    at::Generator given = at::detail::createCPUGenerator(3), same = at::detail::createCPUGenerator(3);
    EXPECT_TRUE(at::rand({4}, given).equal(at::rand({4}, same)));
  }
  EXPECT_EQ(cpu_generator(), outer);
}

TEST(ThreadGenerator, ARecomputationDrawsTheSameAgain) {
  at::Generator generator;
  const ThreadGenerator own(generator, [] { return uint64_t{5}; });
  std::vector<at::Tensor> masks;
  const at::Tensor x = at::ones({64}).requires_grad_(true);
  const at::Tensor y = checkpoint(
      [&](const at::Tensor& input) {
        masks.push_back(at::dropout(input, 0.5, true));
        return masks.back() * 2;
      },
      x);
  at::rand({10});
  y.sum().backward();
  ASSERT_EQ(masks.size(), 2U);
  EXPECT_TRUE(masks[0].equal(masks[1]));
}

}  // namespace
}  // namespace lockstep::nn
