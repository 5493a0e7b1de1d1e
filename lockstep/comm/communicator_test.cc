// What every backend has to do, run over each of them and several numbers of ranks.
#include "lockstep/comm/communicator.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>

#include "lockstep/base/board.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/blocks.h"
#include "lockstep/comm/fold_tree.h"
#include "lockstep/comm/shm_communicator.h"
#include "lockstep/comm/single_communicator.h"
#include "support/ranks.h"

namespace lockstep::comm {
namespace {

using at::Tensor;
using testing_support::expect_ranks_pass;
using testing_support::RankContext;

const at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt, at::kLong, at::kByte};
const int64_t kSizes[] = {0, 1, 7, 4095, 4097, 50000};

// The same on every rank: what rank `rank` brings.
Tensor input_of(int rank, at::ScalarType dtype, at::IntArrayRef shape) {
  at::manual_seed(static_cast<uint64_t>(rank) + 1);
  return at::isFloatingType(dtype) ? at::randn(shape).to(dtype) : at::randint(0, 3, shape).to(dtype);
}

Tensor tree_sum(std::vector<Tensor> values) {
  LeafFold<Tensor> fold;
  const auto add = [](const Tensor& a, const Tensor& b) {
    return a.is_floating_point() && a.element_size() == 2 ? (a.to(at::kFloat) + b.to(at::kFloat)).to(a.scalar_type())
                                                          : a + b;
  };
  for (auto& value : values) fold.push(std::move(value), add);
  return fold.finish(add);
}

std::vector<Tensor> inputs(int size, at::ScalarType dtype, at::IntArrayRef shape) {
  std::vector<Tensor> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(input_of(rank, dtype, shape));
  return all;
}

void check_all_reduce(Communicator& comm) {
  for (const auto dtype : kTypes) {
    for (const int64_t n : kSizes) {
      const auto all = inputs(comm.size(), dtype, {n});
      Tensor sum = all[static_cast<size_t>(comm.rank())].clone();
      comm.all_reduce(sum, ReduceOp::kSum);
      EXPECT_TRUE(at::equal(sum, tree_sum(all))) << dtype << ' ' << n;
      Tensor most = all[static_cast<size_t>(comm.rank())].clone();
      comm.all_reduce(most, ReduceOp::kMax);
      if (n > 0) EXPECT_TRUE(at::equal(most, std::get<0>(at::stack(all).max(0)))) << dtype << ' ' << n;
      Tensor mean = all[static_cast<size_t>(comm.rank())].clone();
      comm.all_reduce(mean, ReduceOp::kMean);
      if (at::isFloatingType(dtype) && dtype != at::kDouble) {
        EXPECT_TRUE(at::equal(mean, (tree_sum(all).to(at::kFloat) / comm.size()).to(dtype))) << dtype << ' ' << n;
      }
    }
  }
}

void check_any_layout(Communicator& comm) {
  const auto all = inputs(comm.size(), at::kFloat, {30, 50});
  const Tensor expected = tree_sum(all);
  Tensor transposed = all[static_cast<size_t>(comm.rank())].t().clone(at::MemoryFormat::Preserve);
  comm.all_reduce(transposed, ReduceOp::kSum);
  EXPECT_TRUE(at::equal(transposed, expected.t()));
  Tensor strided = at::zeros({30, 100}).slice(1, 0, 100, 2);
  strided.copy_(all[static_cast<size_t>(comm.rank())]);
  comm.all_reduce(strided, ReduceOp::kSum);
  EXPECT_TRUE(at::equal(strided, expected));
}

void check_larger_than_a_chunk(Communicator& comm) {
  Tensor big = at::full({3 * (1 << 20) + 17}, comm.rank() + 1, at::kInt);
  comm.all_reduce(big, ReduceOp::kSum);
  EXPECT_TRUE(big.eq(comm.size() * (comm.size() + 1) / 2).all().item<bool>());
}

void check_fold_of_many(Communicator& comm) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    std::vector<Tensor> tensors, expected;
    std::vector<int64_t> elements;
    for (const int64_t n : {5, 0, 4096, 9000}) {
      const auto all = inputs(comm.size(), dtype, {n});
      tensors.push_back(all[static_cast<size_t>(comm.rank())].clone());
      expected.push_back(tree_sum(all));
      elements.push_back(n);
    }
    const Tensor sums = at::full({block_count(elements)}, -1.0, at::kDouble);
    comm.fold(tensors, {.label = "test", .square_sums = sums})->wait();
    for (size_t i = 0; i < tensors.size(); ++i) EXPECT_TRUE(at::equal(tensors[i], expected[i])) << dtype << ' ' << i;
    const int64_t n = 9000 - 2 * kBlockElements;
    EXPECT_EQ(sums[0].item<double>(), square_sum(dtype, expected[0].data_ptr(), 5));
    const auto tail = expected[3].slice(0, 2 * kBlockElements).contiguous();
    EXPECT_EQ(sums[4].item<double>(), square_sum(dtype, tail.data_ptr(), n)) << sums;
  }
}

void check_the_rest(Communicator& comm) {
  for (const auto dtype : kTypes) {
    const auto all = inputs(comm.size(), dtype, {3, 700});
    const Tensor& mine = all[static_cast<size_t>(comm.rank())];
    for (const int root : {0, comm.size() - 1}) {
      Tensor t = mine.clone();
      comm.broadcast(t, root);
      EXPECT_TRUE(at::equal(t, all[static_cast<size_t>(root)])) << dtype;
    }
    EXPECT_TRUE(at::equal(comm.all_gather(mine), at::stack(all)));
    const auto rows = inputs(comm.size(), dtype, {comm.size(), 5, 900});
    const Tensor row = comm.reduce_scatter(rows[static_cast<size_t>(comm.rank())], ReduceOp::kSum);
    EXPECT_TRUE(at::equal(row, tree_sum(rows)[comm.rank()])) << dtype;
  }
  comm.barrier();
}

void check_mistakes(Communicator& comm) {
  EXPECT_THROW(comm.broadcast(at::ones({1}), comm.size()), BugError);
  EXPECT_THROW(comm.all_reduce(at::ones({1}, at::kComplexFloat), ReduceOp::kSum), BugError);
  EXPECT_THROW(comm.reduce_scatter(at::ones({comm.size() + 1}), ReduceOp::kSum), BugError);
  EXPECT_THROW(comm.fold({}, {}), BugError);
  EXPECT_THROW(comm.fold({at::ones({2}), at::ones({2}, at::kInt)}, {}), BugError);
  comm.barrier();  // and it goes on working
}

void conformance(Communicator& comm) {
  check_all_reduce(comm);
  check_any_layout(comm);
  check_larger_than_a_chunk(comm);
  check_fold_of_many(comm);
  check_the_rest(comm);
  check_mistakes(comm);
}

TEST(Conformance, Single) {
  SingleCommunicator comm;
  conformance(comm);
}

RANK_PROGRAM(shm) {
  const Mapping board(context.memory.board.get());
  const auto self = static_cast<size_t>(context.rank);
  auto pool = std::make_unique<Pool>(Descriptor(dup(context.memory.pools[self].get())));
  Pool& where = *pool;
  std::unique_ptr<Pool> owner;  // an installed pool owns itself
  if (context.argument == "pool") {
    Pool::install(std::move(pool));
  } else {
    owner = std::move(pool);
  }
  ShmCommunicator comm({.rank = context.rank, .size = context.size}, context.memory, where,
                       Board::attach(board.data()));
  ASSERT_EQ(comm.size(), context.size);
  conformance(comm);
}

TEST(Conformance, ShmOnTensorsInThePool) {
  for (const int size : {1, 2, 3, 4, 8}) expect_ranks_pass("shm", size, "pool");
}

TEST(Conformance, ShmOnTensorsElsewhere) {
  for (const int size : {2, 3}) expect_ranks_pass("shm", size, "elsewhere");
}

}  // namespace
}  // namespace lockstep::comm
