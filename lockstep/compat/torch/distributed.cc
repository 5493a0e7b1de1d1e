#include "lockstep/compat/torch/distributed.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/comm/communicator.h"

namespace lockstep::pytorch::distributed {
namespace {

// torch.distributed's functions name no context: its default group is the process's.
std::shared_ptr<World>& default_world() {
  static std::shared_ptr<World> world;
  return world;
}

// Sets the default group. A process joins a world once: until then `make` may fail and be called again.
template <typename Make>
void join(bool anew, const Make& make) {
  static bool joined = false;
  if (is_initialized() || (anew && joined)) {
    throw ConfigError(
        "init_process_group was called before in this process, which joins a world once; start a process "
        "for each world, and use new_group() for some of its ranks");
  }
  default_world() = make();
  joined = true;
}

}  // namespace

// A group as this rank, a member, sees it.
struct Member {
  Member(const char* call, const Group& group) : call(call), ranks(group.ranks_), keeper(group.communicator_) {
    const World& world = *joined_world();
    if (!ranks.empty() && keeper == nullptr) throw ConfigError(call, ": rank ", world.rank(), " is not in the group");
    communicator = ranks.empty() ? &world.communicator() : keeper.get();
  }

  static bool is_outside(const Group& group) { return !group.ranks_.empty() && group.communicator_ == nullptr; }

  comm::Communicator* operator->() const { return communicator; }
  int size() const { return communicator->size(); }

  // The number in the group of a rank of the world.
  int number_of(int rank) const {
    const auto found = std::find(ranks.begin(), ranks.end(), rank);
    const bool there = ranks.empty() ? rank >= 0 && rank < size() : found != ranks.end();
    if (!there) throw ConfigError(call, ": rank ", rank, " is not in the group");
    return ranks.empty() ? rank : static_cast<int>(found - ranks.begin());
  }

  // A list has a tensor for each rank.
  void check_list(const std::vector<at::Tensor>& list) const {
    if (list.size() == static_cast<size_t>(size())) return;
    throw ConfigError(call, ": a list of ", list.size(), " tensors; the group has ", size(), " ranks");
  }

  // And all look like `one`: nothing is converted or broadcast.
  void check_list(const std::vector<at::Tensor>& list, const at::Tensor& one) const {
    check_list(list);
    for (const at::Tensor& each : list) check_alike(each, one.sizes(), one.scalar_type());
  }

  void check_alike(const at::Tensor& tensor, at::IntArrayRef sizes, at::ScalarType dtype) const {
    if (tensor.sizes() == sizes && tensor.scalar_type() == dtype) return;
    throw ConfigError(call, ": a tensor of ", tensor.scalar_type(), ' ', tensor.sizes(), " where ", dtype, ' ', sizes,
                      " is expected");
  }

  // `output` takes `numel` elements of this dtype.
  void check_output(const at::Tensor& output, int64_t numel, at::ScalarType dtype) const {
    if (output.numel() == numel && output.scalar_type() == dtype) return;
    throw ConfigError(call, ": an output of ", output.scalar_type(), ' ', output.sizes(), " for ", numel,
                      " elements of ", dtype);
  }

  const char* call;
  std::vector<int> ranks;
  std::shared_ptr<comm::Communicator> keeper;
  comm::Communicator* communicator;
};

namespace {

// [size, …]: a row for each rank.
at::Tensor rows_of(const char* call, const at::Tensor& tensor, int size) {
  if (tensor.numel() % size != 0) {
    throw ConfigError(call, ": a tensor of shape ", tensor.sizes(), " can't be divided among ", size, " ranks");
  }
  return tensor.detach().reshape({size, tensor.numel() / size});
}

void copy_rows(const at::Tensor& rows, const std::vector<at::Tensor>& list) {
  for (size_t i = 0; i < list.size(); ++i) list[i].detach().copy_(rows[static_cast<int64_t>(i)]);
}

void exchange(const Member& member, const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> flat;
  std::vector<int64_t> sent, received;
  for (const at::Tensor& input : inputs) {
    flat.push_back(input.detach().reshape({-1}));
    sent.push_back(input.numel());
  }
  for (const at::Tensor& output : outputs) received.push_back(output.numel());
  const at::Tensor all = member->all_to_all(at::cat(flat), sent, received);
  int64_t first = 0;
  for (const at::Tensor& output : outputs) {
    output.detach().copy_(all.narrow(0, first, output.numel()).view(output.sizes()));
    first += output.numel();
  }
}

}  // namespace

void init_process_group(const InitProcessGroupOptions& options) {
  join(/*anew=*/true, [&] {
    return init({.backend = options.backend,
                 .rank = options.rank,
                 .world_size = options.world_size,
                 .init_method = options.init_method,
                 .timeout = options.timeout,
                 .timeout_name = "InitProcessGroupOptions::timeout"});
  });
}

void init_process_group(std::shared_ptr<World> world) {
  join(/*anew=*/false, [&] { return std::move(world); });
}

void destroy_process_group() { default_world().reset(); }

bool is_initialized() { return default_world() != nullptr; }

std::shared_ptr<World> joined_world(const Group& group) {
  if (!is_initialized()) throw ConfigError("the default process group is not there: call init_process_group first");
  if (group.ranks_.empty()) return default_world();
  if (group.world_ == nullptr) throw ConfigError("rank ", default_world()->rank(), " is not in the group");
  return group.world_;
}

Group new_group(const std::vector<int>& ranks) {
  const auto world = joined_world();
  Group group;
  group.ranks_ = ranks;
  for (int rank = 0; ranks.empty() && rank < world->size(); ++rank) group.ranks_.push_back(rank);
  for (const int rank : group.ranks_) {
    const auto times = std::count(group.ranks_.begin(), group.ranks_.end(), rank);
    if (rank >= 0 && rank < world->size() && times == 1) continue;
    throw ConfigError("new_group: rank ", rank, " is in the list ", times, " times, in a world of ", world->size());
  }
  const bool is_member = std::count(group.ranks_.begin(), group.ranks_.end(), world->rank()) > 0;
  group.communicator_ = world->communicator().make_group(is_member ? group.ranks_ : std::vector<int>());
  if (is_member) group.world_ = std::make_shared<World>(world, group.communicator_);
  return group;
}

int get_rank(const Group& group) {
  if (Member::is_outside(group)) return -1;
  return is_initialized() ? Member("get_rank", group)->rank() : 0;
}

int get_world_size(const Group& group) {
  if (Member::is_outside(group)) return -1;
  return is_initialized() ? Member("get_world_size", group).size() : 1;
}

std::string get_backend(const Group& group) { return Member("get_backend", group)->backend(); }

namespace {

// A mean of whole numbers would be rounded towards zero. NCCL and Gloo refuse it, too.
comm::ReduceOp checked(const char* call, comm::ReduceOp op, const at::Tensor& tensor) {
  if (op == ReduceOp::AVG && !tensor.is_floating_point() && !tensor.is_complex()) {
    throw ConfigError(call, ": AVG of ", tensor.scalar_type(),
                      " would be rounded; take SUM and divide, or convert to "
                      "floating point");
  }
  return op;
}

}  // namespace

void barrier(const Group& group) { Member("barrier", group)->barrier(); }

void all_reduce(const at::Tensor& tensor, comm::ReduceOp op, const Group& group) {
  Member("all_reduce", group)->all_reduce(tensor.detach(), checked("all_reduce", op, tensor));
}

void reduce(const at::Tensor& tensor, int dst, comm::ReduceOp op, const Group& group) {
  const Member member("reduce", group);
  member->reduce(tensor.detach(), member.number_of(dst), checked("reduce", op, tensor));
}

void broadcast(const at::Tensor& tensor, int src, const Group& group) {
  const Member member("broadcast", group);
  member->broadcast(tensor, member.number_of(src));
}

void all_gather(const std::vector<at::Tensor>& tensor_list, const at::Tensor& tensor, const Group& group) {
  const Member member("all_gather", group);
  member.check_list(tensor_list, tensor);
  copy_rows(member->all_gather(tensor.detach()), tensor_list);
}

void all_gather_into_tensor(const at::Tensor& output, const at::Tensor& input, const Group& group) {
  const Member member("all_gather_into_tensor", group);
  member.check_output(output, input.numel() * member.size(), input.scalar_type());
  const at::Tensor rows = member->all_gather(input.detach());
  output.detach().copy_(rows.view(output.sizes()));
}

void reduce_scatter(const at::Tensor& output, const std::vector<at::Tensor>& input_list, comm::ReduceOp op,
                    const Group& group) {
  const Member member("reduce_scatter", group);
  member.check_list(input_list, output);
  output.detach().copy_(member->reduce_scatter(at::stack(input_list).detach(), checked("reduce_scatter", op, output)));
}

void reduce_scatter_tensor(const at::Tensor& output, const at::Tensor& input, comm::ReduceOp op, const Group& group) {
  const Member member("reduce_scatter_tensor", group);
  const at::Tensor rows = rows_of("reduce_scatter_tensor", input, member.size());
  member.check_output(output, rows.size(1), input.scalar_type());
  const at::Tensor row = member->reduce_scatter(rows, checked("reduce_scatter_tensor", op, input));
  output.detach().copy_(row.view(output.sizes()));
}

void all_to_all(const std::vector<at::Tensor>& output_list, const std::vector<at::Tensor>& input_list,
                const Group& group) {
  const Member member("all_to_all", group);
  member.check_list(output_list);
  member.check_list(input_list);
  for (const auto* list : {&output_list, &input_list}) {
    for (const at::Tensor& each : *list) member.check_alike(each, each.sizes(), input_list[0].scalar_type());
  }
  exchange(member, output_list, input_list);
}

void all_to_all_single(const at::Tensor& output, const at::Tensor& input, const Group& group) {
  const Member member("all_to_all_single", group);
  const at::Tensor rows = rows_of("all_to_all_single", input, member.size());
  member.check_output(output, input.numel(), input.scalar_type());
  output.detach().copy_(member->all_to_all(rows).view(output.sizes()));
}

void gather(const at::Tensor& tensor, const std::vector<at::Tensor>& gather_list, int dst, const Group& group) {
  const Member member("gather", group);
  const int root = member.number_of(dst);
  const bool is_root = member->rank() == root;
  if (is_root) member.check_list(gather_list, tensor);
  const at::Tensor rows = member->gather(tensor.detach(), root);
  if (is_root) copy_rows(rows, gather_list);
}

void scatter(const at::Tensor& tensor, const std::vector<at::Tensor>& scatter_list, int src, const Group& group) {
  const Member member("scatter", group);
  const int root = member.number_of(src);
  const bool is_root = member->rank() == root;
  if (is_root) member.check_list(scatter_list, tensor);
  member->scatter(is_root ? at::stack(scatter_list).detach() : at::Tensor(), tensor.detach(), root);
}

void send(const at::Tensor& tensor, int dst, const Group& group, int tag) {
  const Member member("send", group);
  member->send(tensor.detach(), member.number_of(dst), tag);
}

void recv(const at::Tensor& tensor, int src, const Group& group, int tag) {
  const Member member("recv", group);
  member->receive(tensor.detach(), member.number_of(src), tag);
}

Work isend(const at::Tensor& tensor, int dst, const Group& group, int tag) {
  const Member member("isend", group);
  return Work(member->isend(tensor.detach(), member.number_of(dst), tag));
}

Work irecv(const at::Tensor& tensor, int src, const Group& group, int tag) {
  const Member member("irecv", group);
  return Work(member->irecv(tensor.detach(), member.number_of(src), tag));
}

}  // namespace lockstep::pytorch::distributed
