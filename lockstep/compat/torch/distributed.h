// torch.distributed's functions, over World and Communicator (lockstep/world/world.h, lockstep/comm/communicator.h).
//
// A process has one default group, as in PyTorch; it is used from one thread. Calls but isend and irecv return when
// they are done. They throw CommError if another rank is missing, and ConfigError before init_process_group(). Ranks
// are numbered as in the world, also within a group. Tensors are on the CPU, or, with the backend nccl, on its device.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/comm/reduce.h"
#include "lockstep/world/world.h"

namespace lockstep::pytorch::distributed {

struct ReduceOp {
  static constexpr auto SUM = comm::ReduceOp::kSum;
  static constexpr auto AVG = comm::ReduceOp::kMean;
  static constexpr auto PRODUCT = comm::ReduceOp::kProduct;
  static constexpr auto MIN = comm::ReduceOp::kMin;
  static constexpr auto MAX = comm::ReduceOp::kMax;
  static constexpr auto BOR = comm::ReduceOp::kBitOr;
};

struct InitProcessGroupOptions {
  std::string backend = "auto";  // gloo, nccl, mpi, or one of Lockstep's: InitOptions (world.h)
  std::string init_method = "env://";
  std::chrono::milliseconds timeout{600'000};
  int world_size = -1;          // -1: from the environment
  int rank = -1;                // -1: from the environment
  std::string group_name = {};  // ignored, as in PyTorch
};

// Joins the world, which becomes the default group. Throws ConfigError for contradictions and for a second call, since
// a process joins a world once. Throws CommError if the rendezvous with the other ranks fails.
void init_process_group(const InitProcessGroupOptions& options = {});
// The same with a world that lockstep::init() has joined.
void init_process_group(std::shared_ptr<World> world);
// Leaves the default group. Groups made from it must not be used any more. A second world can't be joined.
void destroy_process_group();

constexpr bool is_available() { return true; }
bool is_initialized();
// Some ranks of the world; a default one is the whole world.
class Group {
 public:
  Group() = default;

 private:
  friend Group new_group(const std::vector<int>& ranks);
  friend struct Member;
  friend std::shared_ptr<World> joined_world(const Group& group);
  std::vector<int> ranks_ = {};                            // empty: the world
  std::shared_ptr<comm::Communicator> communicator_ = {};  // nullptr: the world, or this rank is not among them
  std::shared_ptr<World> world_ = {};                      // of the communicator
};

// Returns the joined world, or the world of a group's ranks alone, for lockstep::parallel. Throws ConfigError before
// init_process_group(), and on a rank that is not in the group.
std::shared_ptr<World> joined_world(const Group& group = {});

// Makes a group. All ranks of the world call it, also those that are not named. An empty list names all ranks. Throws
// ConfigError for a rank that the world does not have, or has twice in the list.
Group new_group(const std::vector<int>& ranks = {});

// Returns this rank's number in the group, or -1 outside of it; 0 in the world before init_process_group().
int get_rank(const Group& group = {});
// Returns the number of ranks in the group, or -1 outside of it; 1 in the world before init_process_group().
int get_world_size(const Group& group = {});
std::string get_backend(const Group& group = {});

// The collectives. Each throws ConfigError if this rank is not in the group, for lists of another length than the
// group's size, for a `src` or `dst` outside of the group, and for AVG of whole numbers.
void barrier(const Group& group = {});
void all_reduce(const at::Tensor& tensor, comm::ReduceOp op = ReduceOp::SUM, const Group& group = {});  // in place
void reduce(const at::Tensor& tensor, int dst, comm::ReduceOp op = ReduceOp::SUM, const Group& group = {});
void broadcast(const at::Tensor& tensor, int src, const Group& group = {});
void all_gather(const std::vector<at::Tensor>& tensor_list, const at::Tensor& tensor, const Group& group = {});
// `output` has as many elements as all ranks' inputs together, in the order of ranks.
void all_gather_into_tensor(const at::Tensor& output, const at::Tensor& input, const Group& group = {});
void reduce_scatter(const at::Tensor& output, const std::vector<at::Tensor>& input_list,
                    comm::ReduceOp op = ReduceOp::SUM, const Group& group = {});
void reduce_scatter_tensor(const at::Tensor& output, const at::Tensor& input, comm::ReduceOp op = ReduceOp::SUM,
                           const Group& group = {});
// The tensors of a list may differ in shape, as long as sender and receiver agree.
void all_to_all(const std::vector<at::Tensor>& output_list, const std::vector<at::Tensor>& input_list,
                const Group& group = {});
void all_to_all_single(const at::Tensor& output, const at::Tensor& input, const Group& group = {});
// The root alone passes a list; elsewhere it is empty.
void gather(const at::Tensor& tensor, const std::vector<at::Tensor>& gather_list = {}, int dst = 0,
            const Group& group = {});
void scatter(const at::Tensor& tensor, const std::vector<at::Tensor>& scatter_list = {}, int src = 0,
             const Group& group = {});
void send(const at::Tensor& tensor, int dst, const Group& group = {}, int tag = 0);
void recv(const at::Tensor& tensor, int src, const Group& group = {}, int tag = 0);

// A message under way. Used by the thread that began it, while the process group is there. Dropping a Work does not end
// the message, unless it receives into a tensor that is not contiguous: then only the Work copies the result there.
class Work {
 public:
  // Whether the message is done. Throws as wait().
  bool is_completed() { return work_->done(); }
  // Returns true when the message is done. Throws CommError, DesyncError.
  bool wait() {
    work_->wait();
    return true;
  }

 private:
  friend Work isend(const at::Tensor& tensor, int dst, const Group& group, int tag);
  friend Work irecv(const at::Tensor& tensor, int src, const Group& group, int tag);
  explicit Work(std::shared_ptr<comm::Work> work) : work_(std::move(work)) {}
  std::shared_ptr<comm::Work> work_;
};

// Begin a send or receive; `tensor` is not to be touched before the result is done.
[[nodiscard]] Work isend(const at::Tensor& tensor, int dst, const Group& group = {}, int tag = 0);
[[nodiscard]] Work irecv(const at::Tensor& tensor, int src, const Group& group = {}, int tag = 0);

}  // namespace lockstep::pytorch::distributed
