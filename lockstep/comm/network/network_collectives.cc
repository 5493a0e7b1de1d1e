#include "lockstep/comm/network/network_collectives.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/comm/blocks.h"
#include "lockstep/comm/flat_fold.h"
#include "lockstep/comm/network/tree_join.h"
#include "lockstep/comm/tensor_bytes.h"

namespace lockstep::comm {
namespace {

// The parts of a tensor's memory, one for each member; `counts` are numbers of elements.
std::vector<Piece> pieces_of(const at::Tensor& tensor, const std::vector<int64_t>& counts) {
  std::vector<Piece> pieces;
  const std::byte* data = data_of(tensor);
  for (size_t k = 0; k < counts.size(); ++k) {
    const auto bytes = static_cast<size_t>(counts[k]) * tensor.element_size();
    pieces.push_back({static_cast<int>(k), data, bytes});
    data += bytes;
  }
  return pieces;
}

// Copies the piece that a member sends to itself, and removes it from both lists.
void copy_own(std::vector<Piece>& sends, std::vector<Piece>& receives, int self) {
  const auto own = [self](std::vector<Piece>& pieces) {
    const auto at = std::find_if(pieces.begin(), pieces.end(), [self](const Piece& p) { return p.member == self; });
    const Piece piece = *at;
    pieces.erase(at);
    return piece;
  };
  const Piece from = own(sends), to = own(receives);
  if (from.bytes != 0) std::memmove(const_cast<void*>(to.data), from.data, std::min(from.bytes, to.bytes));
}

std::vector<Piece> to_all(const Exchange& exchange, const at::Tensor& tensor) {
  std::vector<Piece> pieces;
  for (int k = 0; k < exchange.size(); ++k) pieces.push_back({k, data_of(tensor), tensor.nbytes()});
  return pieces;
}

void all_to_all(Exchange& exchange, std::vector<Piece> sends, std::vector<Piece> receives) {
  copy_own(sends, receives, exchange.self());
  exchange(sends, receives);
}

// Every member sends its piece to the root, or the root sends one to every member.
void gather(Exchange& exchange, const Call& call) {
  if (exchange.self() != call.peer) return exchange({{call.peer, data_of(call.input), call.input.nbytes()}}, {});
  std::vector<Piece> own{{call.peer, data_of(call.input), call.input.nbytes()}};
  auto receives = pieces_of(call.output, call.receive_counts);
  copy_own(own, receives, call.peer);
  exchange({}, receives);
}

void scatter(Exchange& exchange, const Call& call) {
  if (exchange.self() != call.peer) return exchange({}, {{call.peer, data_of(call.output), call.output.nbytes()}});
  std::vector<Piece> own{{call.peer, data_of(call.output), call.output.nbytes()}};
  auto sends = pieces_of(call.input, call.send_counts);
  copy_own(sends, own, call.peer);
  exchange(sends, {});
}

// A binomial tree: in round i the members that have the data, 2^i of them, each send it to one more.
void broadcast_small(Exchange& exchange, int root, std::byte* data, size_t bytes) {
  const int size = exchange.size(), relative = (exchange.self() - root + size) % size;
  for (int have = 1; have < size; have *= 2) {
    const auto member = [&](int p) { return (p + root) % size; };
    if (relative < have && relative + have < size) {
      exchange({{member(relative + have), data, bytes}}, {});
    } else if (relative >= have && relative < 2 * have) {
      exchange({}, {{member(relative - have), data, bytes}});
    } else {
      exchange({}, {});
    }
  }
}

// The root sends each member a slice, then the members exchange their slices. Every link carries twice the data, where
// the binomial tree's root would send the data log2(size) times.
void broadcast_large(Exchange& exchange, int root, std::byte* data, size_t bytes) {
  const int size = exchange.size();
  const auto piece = [&](int member, int k) {
    const Slice slice = slice_of(static_cast<int64_t>(bytes), k, size);
    return Piece{member, data + slice.first, static_cast<size_t>(slice.last - slice.first)};
  };
  std::vector<Piece> sends, receives;
  const bool is_root = exchange.self() == root;
  for (int k = 0; k < size && is_root; ++k) {
    if (k != root) sends.push_back(piece(k, k));
  }
  exchange(sends, is_root ? receives : std::vector<Piece>{piece(root, exchange.self())});
  sends.clear();
  for (int k = 0; k < size; ++k) {
    if (k == exchange.self()) continue;
    if (k != root) sends.push_back(piece(k, exchange.self()));
    if (!is_root) receives.push_back(piece(k, k));
  }
  exchange(sends, receives);
}

void broadcast(Exchange& exchange, const Call& call) {
  constexpr size_t kLarge = size_t{256} << 10;
  const size_t bytes = call.output.nbytes();
  const bool large = bytes >= kLarge && exchange.size() > 2;
  (large ? broadcast_large : broadcast_small)(exchange, call.peer, data_of(call.output), bytes);
}

// A dissemination barrier: after round i every member knows, directly or not, that 2^(i+1) members have arrived.
void barrier(Exchange& exchange) {
  char told = 1, heard = 0;
  const int size = exchange.size(), self = exchange.self();
  for (int step = 1; step < size; step *= 2) {
    exchange({{(self + step) % size, &told, 1}}, {{(self - step + size) % size, &heard, 1}});
  }
}

void all_reduce(Exchange& exchange, const Call& call) {
  std::vector<at::Tensor> partials{call.output};
  tree_join(exchange, leaves_plan(exchange.size()), call.op, partials);
}

// An all_reduce whose result only the root keeps: the other members reduce a copy of their input.
void reduce(Exchange& exchange, const Call& call) {
  const bool is_root = exchange.self() == call.peer;
  std::vector<at::Tensor> partials{is_root ? call.output : call.input.clone()};
  tree_join(exchange, leaves_plan(exchange.size()), call.op, partials);
}

void fold(Exchange& exchange, const Call& call) {
  FlatFold flat(call);
  std::vector<at::Tensor> partials{flat.values()};
  tree_join(exchange, leaves_plan(exchange.size()), ReduceOp::kSum, partials);
  flat.finish();
}

}  // namespace

void run_collective(Exchange& exchange, const Call& call) {
  switch (call.kind) {
    case OpKind::kFold:
      return fold(exchange, call);
    case OpKind::kAllReduce:
      return all_reduce(exchange, call);
    case OpKind::kReduce:
      return reduce(exchange, call);
    case OpKind::kBroadcast:
      return broadcast(exchange, call);
    case OpKind::kAllGather:
      return all_to_all(exchange, to_all(exchange, call.input), pieces_of(call.output, call.receive_counts));
    case OpKind::kReduceScatter:
      return tree_reduce_scatter(exchange, call.op, call.input, call.output);
    case OpKind::kAllToAll:
      return all_to_all(exchange, pieces_of(call.input, call.send_counts), pieces_of(call.output, call.receive_counts));
    case OpKind::kGather:
      return gather(exchange, call);
    case OpKind::kScatter:
      return scatter(exchange, call);
    case OpKind::kBarrier:
      return barrier(exchange);
    case OpKind::kSend:
    case OpKind::kReceive:
      break;
  }
  throw BugError(name_of(call.kind), " is no collective");
}

}  // namespace lockstep::comm
