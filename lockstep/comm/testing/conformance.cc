#include "lockstep/comm/testing/conformance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/comm/blocks.h"
#include "lockstep/comm/testing/values.h"

namespace lockstep::comm::testing {
namespace {

using at::Tensor;

const at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kChar,
                                 at::kByte,  at::kShort,  at::kInt,  at::kLong,     at::kBool};
const ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMean,    ReduceOp::kMax,
                         ReduceOp::kMin, ReduceOp::kProduct, ReduceOp::kBitOr};

// A number that differs from rank to rank and that all ranks can compute, for rows, tags and counts.
int64_t rows_between(int from, int to) { return (3 * from + 5 * to) % 4; }

const Tensor& mine(const Communicator& comm, const std::vector<Tensor>& all) {
  return all[static_cast<size_t>(comm.rank())];
}

// Whether `call` gives `tensor` a new version, as an operation in place does.
template <typename Act>
bool counts(const Tensor& tensor, const Act& call) {
  const auto before = tensor._version();
  call();
  return tensor._version() != before;
}

void check_reduction(Communicator& comm, at::ScalarType dtype, ReduceOp op, int64_t n, Layout layout) {
  const auto all = inputs(comm.size(), dtype, {n});
  const Tensor whole = expected(all, op);
  const auto name = [&] { return cat(name_of(op), " of ", n, ' ', c10::toString(dtype), ", layout ", int(layout)); };
  const Tensor everywhere = laid_out(mine(comm, all), layout);
  comm.all_reduce(everywhere, op);
  EXPECT_TRUE(at::equal(everywhere, whole)) << "all_reduce, " << name();
  const int root = comm.size() / 2;
  const Tensor on_root = laid_out(mine(comm, all), layout);
  comm.reduce(on_root, root, op);
  EXPECT_TRUE(at::equal(on_root, comm.rank() == root ? whole : mine(comm, all))) << "reduce, " << name();
}

void check_reduce_scatter(Communicator& comm, at::ScalarType dtype, ReduceOp op, int64_t n) {
  const auto rows = inputs(comm.size(), dtype, {comm.size(), n});
  const Tensor row = comm.reduce_scatter(laid_out(mine(comm, rows), Layout::kUnaligned), op);
  EXPECT_TRUE(at::equal(row, expected(rows, op)[comm.rank()])) << "reduce_scatter, " << name_of(op) << ' ' << dtype;
}

void check_fold_of_many(Communicator& comm, at::ScalarType dtype) {
  std::vector<Tensor> tensors, wanted;
  std::vector<int64_t> elements;
  for (const int64_t n : {5, 0, 4096, 9000}) {
    const auto all = inputs(comm.size(), dtype, {n});
    tensors.push_back(laid_out(mine(comm, all), n == 9000 ? Layout::kUnaligned : Layout::kAligned));
    wanted.push_back(expected(all, ReduceOp::kSum));
    elements.push_back(n);
  }
  const Tensor sums = at::full({block_count(elements)}, -1.0, at::kDouble);
  comm.fold(tensors, {.label = "test", .square_sums = sums})->wait();
  for (size_t i = 0; i < tensors.size(); ++i) EXPECT_TRUE(at::equal(tensors[i], wanted[i])) << dtype << ' ' << i;
  const auto squares = [](const Tensor& part) { return part.to(at::kDouble).square().sum().item<double>(); };
  EXPECT_NEAR(sums[0].item<double>(), squares(wanted[0]), 1e-9 * squares(wanted[0]));
  EXPECT_NEAR(sums[4].item<double>(), squares(wanted[3].slice(0, 8192)), 1e-9 * squares(wanted[3]));
}

void check_fold_on_wire(Communicator& comm, at::ScalarType wire) {
  const auto all = inputs(comm.size(), at::kFloat, {2, 5001});
  const Tensor tensor = mine(comm, all).clone();
  comm.fold({tensor}, {.label = "wire", .wire = wire})->wait();
  EXPECT_TRUE(at::equal(tensor, expected_on_wire(all, wire))) << wire;
}

// Leaves may be 16 bits wide, on all ranks or on some.
void check_fold_of_leaves(Communicator& comm, at::ScalarType type) {
  const auto all = inputs(comm.size(), type, {3, 5001});
  std::vector<Tensor> wide, tensors, leaves;
  for (const auto& values : all) wide.push_back(values.to(at::kFloat));
  for (const auto layout : {Layout::kAligned, Layout::kAligned, Layout::kUnaligned}) {
    const bool narrow = tensors.size() != 1 || comm.rank() % 2 == 0;  // of the second, on some
    const Tensor own = mine(comm, wide);
    leaves.push_back(narrow ? mine(comm, all).clone() : Tensor());
    tensors.push_back(laid_out(narrow ? at::full_like(own, NAN) : own, layout));
  }
  const Tensor wanted = expected(wide, ReduceOp::kSum);
  const auto check = [&](size_t count) {
    std::vector<Tensor> some;
    for (size_t i = 0; i < count; ++i) some.push_back(tensors[i].clone());
    if (count == 3) some[2] = tensors[2];
    FoldOptions options{.label = "leaves", .square_sums = at::zeros({static_cast<int64_t>(4 * count)}, at::kDouble)};
    options.leaves.assign(leaves.begin(), leaves.begin() + static_cast<std::ptrdiff_t>(count));
    const Tensor sums = options.square_sums;
    comm.fold(some, std::move(options))->wait();
    for (size_t i = 0; i < count; ++i) EXPECT_TRUE(at::equal(some[i], wanted)) << type << ' ' << i;
    const double squares = wanted.to(at::kDouble).square().sum().item<double>() * static_cast<double>(count);
    EXPECT_NEAR(sums.sum().item<double>(), squares, 1e-9 * squares);
  };
  check(2);
  check(3);
}

void check_even_movements(Communicator& comm, at::ScalarType dtype, int64_t n, Layout layout) {
  const auto all = inputs(comm.size(), dtype, {n}), rows = inputs(comm.size(), dtype, {comm.size(), n});
  const auto name = [&] { return cat(n, ' ', c10::toString(dtype), ", layout ", int(layout)); };
  for (const int root : {0, comm.size() - 1}) {
    const Tensor cast = laid_out(mine(comm, all), layout);
    comm.broadcast(cast, root);
    EXPECT_TRUE(at::equal(cast, all[static_cast<size_t>(root)])) << "broadcast, " << name();
    const Tensor gathered = comm.gather(laid_out(mine(comm, all), layout), root);
    ASSERT_EQ(gathered.defined(), comm.rank() == root);
    if (gathered.defined()) EXPECT_TRUE(at::equal(gathered, at::stack(all))) << "gather, " << name();
    const Tensor out = laid_out(at::zeros({n}, dtype), layout);
    comm.scatter(laid_out(rows[static_cast<size_t>(root)], layout), out, root);
    EXPECT_TRUE(at::equal(out, rows[static_cast<size_t>(root)][comm.rank()])) << "scatter, " << name();
  }
  EXPECT_TRUE(at::equal(comm.all_gather(laid_out(mine(comm, all), layout)), at::stack(all)))
      << "all_gather, " << name();
  std::vector<Tensor> turned;
  for (const auto& from : rows) turned.push_back(from[comm.rank()]);
  EXPECT_TRUE(at::equal(comm.all_to_all(laid_out(mine(comm, rows), layout)), at::stack(turned)))
      << "all_to_all, " << name();
}

void check_uneven_movements(Communicator& comm, int64_t width) {
  const auto row_of = [&](int from, int to) {
    return input_of(100 * from + to, at::kFloat, {rows_between(from, to), width});
  };
  std::vector<Tensor> sent, wanted;
  std::vector<int64_t> send_rows, receive_rows;
  for (int k = 0; k < comm.size(); ++k) {
    sent.push_back(row_of(comm.rank(), k));
    wanted.push_back(row_of(k, comm.rank()));
    send_rows.push_back(rows_between(comm.rank(), k));
    receive_rows.push_back(rows_between(k, comm.rank()));
  }
  EXPECT_TRUE(at::equal(comm.all_to_all(at::cat(sent), send_rows, receive_rows), at::cat(wanted)));
  const auto gathered = comm.all_gather_uneven(row_of(comm.rank(), 0));
  ASSERT_EQ(gathered.size(), static_cast<size_t>(comm.size()));
  for (int k = 0; k < comm.size(); ++k) EXPECT_TRUE(at::equal(gathered[static_cast<size_t>(k)], row_of(k, 0)));
}

// Everyone sends to the next rank and receives from the one before, in whatever order.
void check_ring(Communicator& comm, int64_t n, bool receive_first) {
  const int next = (comm.rank() + 1) % comm.size(), before = (comm.rank() + comm.size() - 1) % comm.size();
  std::vector<std::shared_ptr<Work>> works;
  std::vector<Tensor> got;
  const auto receive = [&] {
    for (int tag = 0; tag < 3; ++tag) {
      for (int i = 0; i < 3; ++i) {
        got.push_back(at::empty({n}));
        works.push_back(comm.irecv(got.back(), before, tag));
      }
    }
  };
  if (receive_first) receive();
  for (int i = 0; i < 3; ++i) {
    for (int tag = 2; tag >= 0; --tag) {
      works.push_back(comm.isend(at::full({n}, 100 * comm.rank() + 10 * tag + i, at::kFloat), next, tag));
    }
  }
  if (got.empty()) receive();
  for (size_t i = works.size(); i-- > 0;) works[i]->wait();
  for (int k = 0; k < 9; ++k) {
    const Tensor wanted = at::full({n}, 100 * before + 10 * (k / 3) + k % 3, at::kFloat);
    EXPECT_TRUE(at::equal(got[static_cast<size_t>(k)], wanted)) << k << " of " << n;
  }
}

float sum_of_ranks(const Communicator& comm) { return static_cast<float>(comm.size() * (comm.size() - 1) / 2); }

void check_group(Communicator& world, Communicator& group, const std::vector<int>& members) {
  ASSERT_EQ(group.size(), static_cast<int>(members.size()));
  ASSERT_EQ(members[static_cast<size_t>(group.rank())], world.rank());
  const float sum = static_cast<float>(std::accumulate(members.begin(), members.end(), 0));
  const Tensor across = at::full({6000}, world.rank(), at::kFloat), inside = at::full({5000}, world.rank(), at::kFloat);
  const auto outer = world.fold({across}, {.label = "all"});
  const auto inner = group.fold({inside}, {.label = "some"});
  inner->wait();
  const Tensor told = at::full({3}, world.rank(), at::kFloat);
  group.broadcast(told, group.size() - 1);
  outer->wait();
  EXPECT_EQ(inside[4999].item<float>(), sum);
  EXPECT_EQ(across[5999].item<float>(), sum_of_ranks(world));
  EXPECT_EQ(told[0].item<float>(), static_cast<float>(members.back()));
  check_ring(group, 10, true);
}

}  // namespace

void check_reductions(Communicator& comm) {
  for (const auto dtype : kTypes) {
    for (const auto op : kOps) {
      if (!can_reduce(dtype, op)) continue;
      for (const Layout layout : kLayouts) check_reduction(comm, dtype, op, 4097, layout);
      for (const int64_t n : {0, 1, 7}) check_reduction(comm, dtype, op, n, Layout::kAligned);
      check_reduce_scatter(comm, dtype, op, 901);
    }
  }
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    check_reduction(comm, dtype, ReduceOp::kSum, 700000, Layout::kUnaligned);
  const auto all = inputs(comm.size(), at::kFloat, {30, 50});
  const Tensor transposed = mine(comm, all).t().clone(at::MemoryFormat::Preserve);
  comm.all_reduce(transposed, ReduceOp::kSum);
  EXPECT_TRUE(at::equal(transposed, expected(all, ReduceOp::kSum).t()));
}

void check_folds(Communicator& comm) {
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kDouble}) check_fold_of_many(comm, dtype);
  for (const auto wire : {at::kBFloat16, at::kHalf}) check_fold_on_wire(comm, wire);
  for (const auto type : {at::kBFloat16, at::kHalf}) check_fold_of_leaves(comm, type);
}

void check_movements(Communicator& comm) {
  for (const auto dtype : kTypes) {
    for (const Layout layout : kLayouts) check_even_movements(comm, dtype, 700, layout);
  }
  for (const int64_t n : {0, 1, 4097, 600000}) check_even_movements(comm, at::kFloat, n, Layout::kAligned);
  for (const int64_t width : {1, 130, 200000}) check_uneven_movements(comm, width);
  comm.barrier();
}

void check_versions(Communicator& comm) {
  const Tensor tensor = at::zeros({6, 4}), weight = at::zeros({6}).requires_grad_(), other = at::zeros({6, 4});
  for (const Tensor& each : {tensor, tensor.t(), weight}) {
    EXPECT_TRUE(counts(each, [&] { comm.all_reduce(each, ReduceOp::kSum); }));
    EXPECT_TRUE(counts(each, [&] { comm.broadcast(each, 0); })) << "on the root, too, which only sends";
    EXPECT_FALSE(counts(each, [&] { comm.all_gather(each); }));
  }
  EXPECT_TRUE(counts(tensor, [&] { comm.fold({tensor}, {.label = "versions"})->wait(); }));
  EXPECT_TRUE(counts(tensor, [&] {
    const auto sent = comm.isend(other, comm.rank());
    comm.receive(tensor, comm.rank());
    sent->wait();
  }));
  const auto without_version = [] {
    const c10::InferenceMode mode;
    return at::ones({3}, at::kDouble);
  };
  comm.all_reduce(without_version(), ReduceOp::kSum);
}

void check_under_way(Communicator& comm) {
  constexpr int kCalls = 150;  // more than any backend's own limit
  std::vector<std::shared_ptr<Work>> works;
  std::vector<Tensor> tensors;
  for (int i = 0; i < kCalls; ++i) {
    tensors.push_back(at::full({1 + 97 * i}, comm.rank() + i, at::kInt));
    if (i % 3 == 2) {
      works.push_back(comm.start(calls::broadcast(tensors.back(), i % comm.size())));
    } else {
      works.push_back(comm.start(calls::all_reduce(tensors.back(), i % 3 == 0 ? ReduceOp::kMax : ReduceOp::kMin)));
    }
    if (i % (3 + comm.rank()) == 0) comm.progress();
  }
  for (int i = 0; i < kCalls; ++i) {
    auto& work = works[static_cast<size_t>((i * 7) % kCalls)];
    while (!work->wait_for(std::chrono::seconds(1))) {
    }
    EXPECT_TRUE(work->done());
    EXPECT_EQ(work->elapsed(), work->elapsed());
  }
  for (int i = 0; i < kCalls; ++i) {
    const int wanted = i + (i % 3 == 0 ? comm.size() - 1 : i % 3 == 1 ? 0 : i % comm.size());
    EXPECT_TRUE(tensors[static_cast<size_t>(i)].eq(wanted).all().item<bool>()) << i;
  }
}

void check_messages(Communicator& comm) {
  for (const bool receive_first : {true, false}) {
    for (const int64_t n : {0, 1, 5000, 700000}) check_ring(comm, n, receive_first);
  }
  if (comm.rank() == 0) comm.isend(at::ones({5}), comm.size() - 1, 7);  // nobody holds it
  if (comm.rank() == comm.size() - 1) {
    const Tensor strided = at::zeros({10}).slice(0, 0, 10, 2);
    comm.receive(strided, 0, 7);
    EXPECT_EQ(strided.sum().item<float>(), 5);
  }
  comm.barrier();
}

void check_groups(Communicator& comm) {
  std::vector<int> alike, all(static_cast<size_t>(comm.size()));
  for (int k = comm.rank() % 2; k < comm.size(); k += 2) alike.push_back(k);
  std::iota(all.rbegin(), all.rend(), 0);
  const auto halves = comm.split(comm.rank() % 2);
  const auto reversed = comm.split(0, -comm.rank());
  const auto without_last = comm.split(comm.rank() == comm.size() - 1 ? -1 : 3);
  EXPECT_EQ(without_last == nullptr, comm.rank() == comm.size() - 1);
  for (int i = 0; i < 3; ++i) {
    check_group(comm, *halves, alike);
    check_group(comm, *reversed, all);
  }
  if (without_last) without_last->barrier();
  const auto quarter = halves->split(halves->rank() % 2);
  quarter->barrier();
}

void check_views(Communicator& comm) {
  const int root = comm.size() - 1;
  const std::vector<Tensor> mine = {
      at::full({2, 3, 4, 5}, comm.rank(), at::kFloat).contiguous(at::MemoryFormat::ChannelsLast),
      at::full({7}, comm.rank(), at::kLong)};
  const auto views = comm.views_of(root, mine);
  const Tensor got = at::full({1}, static_cast<int64_t>(views.size()), at::kLong);
  comm.all_reduce(got, ReduceOp::kMin);
  EXPECT_EQ(got.item<int64_t>(), static_cast<int64_t>(views.size())) << "all ranks or none";
  if (!comm.has_views()) EXPECT_TRUE(views.empty());
  if (views.empty()) return;
  for (size_t i = 0; i < views.size(); ++i) {
    EXPECT_TRUE(views[i].eq(root).all().item<bool>());
    EXPECT_EQ(views[i].strides(), mine[i].strides());
  }
  comm.barrier();
  if (comm.rank() == 0) views[0].select(0, 1).fill_(99), views[1].fill_(-5);
  comm.barrier();
  EXPECT_TRUE(views[0].select(0, 0).eq(root).all().item<bool>());
  EXPECT_TRUE(views[0].select(0, 1).eq(99).all().item<bool>());
  EXPECT_TRUE(views[1].eq(-5).all().item<bool>());
  if (comm.rank() == root) EXPECT_TRUE(mine[1].eq(-5).all().item<bool>());
  comm.barrier();  // the root's tensors stay until all have looked
}

void check_mistakes(Communicator& comm) {
  EXPECT_THROW(comm.broadcast(at::ones({1}), comm.size()), BugError);
  EXPECT_THROW(comm.all_reduce(at::ones({1}, at::kComplexFloat), ReduceOp::kSum), BugError);
  EXPECT_THROW(comm.all_reduce(at::ones({1}), ReduceOp::kBitOr), BugError);
  EXPECT_THROW(comm.all_reduce(at::ones({1}, at::kInt), ReduceOp::kMean), ConfigError) << "it would be rounded";
  EXPECT_THROW(comm.reduce_scatter(at::ones({comm.size() + 1}), ReduceOp::kSum), BugError);
  EXPECT_THROW(comm.fold({}, {}), BugError);
  EXPECT_THROW(comm.fold({at::ones({2})}, {.leaves = {at::ones({3}, at::kHalf)}}), BugError);
  EXPECT_THROW(comm.fold({at::ones({2}), at::ones({2}, at::kInt)}, {}), BugError);
  EXPECT_THROW(comm.send(at::ones({1}), -1), BugError);
  comm.barrier();  // and it goes on working
}

void check_megabytes(Communicator& comm, int64_t bytes) {
  const int64_t n = bytes / 4 + 3;
  const Tensor big = at::arange(n, at::kInt).bitwise_and_(0xffff), sum = big + comm.rank();
  comm.all_reduce(sum, ReduceOp::kSum);
  EXPECT_TRUE(at::equal(sum, big * comm.size() + static_cast<int>(sum_of_ranks(comm))));
  const Tensor cast = comm.rank() == 0 ? big.clone() : at::zeros_like(big);
  comm.broadcast(cast, 0);
  EXPECT_TRUE(at::equal(cast, big));
  EXPECT_TRUE(at::equal(comm.all_gather(big)[comm.size() - 1], big));
}

void conformance(Communicator& comm) {
  check_reductions(comm);
  check_folds(comm);
  check_movements(comm);
  check_versions(comm);
  check_under_way(comm);
  check_messages(comm);
  check_groups(comm);
  check_views(comm);
  check_mistakes(comm);
  check_megabytes(comm, int64_t{3} << 20);
}

}  // namespace lockstep::comm::testing
