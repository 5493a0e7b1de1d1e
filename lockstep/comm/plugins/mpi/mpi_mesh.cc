#include "lockstep/comm/plugins/mpi_plugin.h"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/comm/plugins/mpi/mpi_tag.h"

namespace lockstep::comm {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr size_t kPiece = size_t{1} << 30;  // MPI counts in int

std::string mpi_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {text, static_cast<size_t>(length)};
}

// A group's communicator. Its ranks are numbered as they are listed.
struct MpiGroup {
  MPI_Comm comm = MPI_COMM_NULL;
  std::map<int, int> place;  // by rank of the mesh
};

// The pauses of a polling thread. It spins for a moment, then yields its core for about as long as the bytes take, then
// sleeps for ever longer times, so that more ranks than cores make progress.
class Backoff {
 public:
  explicit Backoff(size_t bytes) : yields_(microseconds(500) + nanoseconds(bytes)) {}

  // The time to sleep now; zero if it has spun or yielded instead.
  nanoseconds pause() {
    const nanoseconds waited(monotonic_ns() - began_);
    if (waited < kSpin) return {};
    if (waited < yields_) {
      sched_yield();
      return {};
    }
    return std::exchange(nap_, std::min(2 * nap_, kLongest));
  }

 private:
  static constexpr nanoseconds kSpin = microseconds(20), kLongest = microseconds(200);
  int64_t began_ = monotonic_ns();
  nanoseconds yields_, nap_ = microseconds(5);
};

class MpiMesh final : public Mesh {
 public:
  struct Start {
    MPI_Comm comm;
    bool finalises;   // whether this mesh has initialised MPI
    bool serialised;  // whether MPI allows one thread at a time
  };
  explicit MpiMesh(Start start) : start_(start) {
    MPI_Comm_rank(start_.comm, &rank_);
    MPI_Comm_size(start_.comm, &size_);
    int found = 0;
    void* bound = nullptr;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &found);  // other communicators may not have it
    if (found != 0) tag_bound_ = static_cast<uint32_t>(*static_cast<int*>(bound));
  }

  // The communicators are left to MPI_Finalize, for freeing them would communicate.
  ~MpiMesh() override {
    if (start_.finalises && !broken_) MPI_Finalize();
  }

  const char* name() const override { return "mpi"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::string describe() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    const std::string version(text, static_cast<size_t>(length));
    return "mpi: " + version.substr(0, version.find_first_of(",\n"));
  }

  void exchange(std::span<const Message> sends, std::span<const Message> receives, const Patience& patience) override {
    if (broken_) throw MeshError(MeshError::Cause::kAborted, {}, "the exchange was aborted");
    Batch batch(*this);
    for (const Message& message : receives) batch.post(message, /*sends=*/false);
    for (const Message& message : sends) batch.post(message, /*sends=*/true);
    batch.wait(patience);
  }

  void open_group(int number, const std::vector<int>& ranks) override;

  void check() noexcept override {}  // MPI ends the job where a process dies
  void abort() noexcept override {
    broken_ = true;
    awake_.notify_all();  // a thread that falls asleep just now wakes soon by itself
  }

 private:
  // The requests of one exchange, and the piece of a message that each moves.
  class Batch {
   public:
    explicit Batch(MpiMesh& mesh) : mesh_(mesh) {}
    ~Batch() {
      if (open_ > 0) cancel();
    }

    void post(const Message& message, bool sends);
    void wait(const Patience& patience);

   private:
    struct Piece {
      int peer;
      int bytes;
      bool sends;
    };

    int poll();
    void finish_request(int index, const MPI_Status& status);
    std::vector<int> waited_for() const;
    void cancel();
    [[noreturn]] void fail(MeshError::Cause cause, std::vector<int> peers, const std::string& text) {
      mesh_.broken_ = true;
      throw MeshError(cause, std::move(peers), text);
    }

    MpiMesh& mesh_;
    std::vector<MPI_Request> requests_;
    std::vector<Piece> pieces_;
    size_t open_ = 0, bytes_ = 0;
    std::vector<int> done_;
    std::vector<MPI_Status> statuses_;
  };

  void nap(nanoseconds time) {
    std::unique_lock lock(napping_);
    awake_.wait_for(lock, time);
  }

  // The communicator of a group's messages, and a peer's rank there.
  std::pair<MPI_Comm, int> address_of(const Message& message) {
    if (message.group == 0) return {start_.comm, message.peer};
    const std::lock_guard lock(groups_mutex_);
    const MpiGroup& group = *groups_.at(message.group);
    return {group.comm, group.place.at(message.peer)};
  }

  std::unique_lock<std::mutex> turn() {
    return start_.serialised ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }

  Start start_;
  int rank_ = 0, size_ = 0;
  uint32_t tag_bound_ = 32767;
  std::mutex mutex_, napping_, groups_mutex_;
  // A group that comes back, with its number and ranks, meets the communicator that it had.
  std::map<std::pair<int, std::vector<int>>, MpiGroup> made_;
  std::map<int, const MpiGroup*> groups_;  // the newest of each number
  std::condition_variable awake_;
  std::atomic<bool> broken_ = false;
};

// Tags may have too few bits to keep groups apart, so that each has a communicator of its own.
void MpiMesh::open_group(int number, const std::vector<int>& ranks) {
  MpiGroup* group = nullptr;
  {
    const std::lock_guard lock(groups_mutex_);
    group = &made_[{number, ranks}];
    groups_[number] = group;
  }
  if (group->comm != MPI_COMM_NULL) return;
  for (size_t k = 0; k < ranks.size(); ++k) group->place[ranks[k]] = static_cast<int>(k);
  const auto lock = turn();
  MPI_Group all = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
  int code = MPI_Comm_group(start_.comm, &all);
  if (code == MPI_SUCCESS) code = MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &members);
  if (code == MPI_SUCCESS) code = MPI_Comm_create_group(start_.comm, members, number, &group->comm);
  if (members != MPI_GROUP_NULL) MPI_Group_free(&members);
  if (all != MPI_GROUP_NULL) MPI_Group_free(&all);
  if (code != MPI_SUCCESS) {
    throw CommError("backend mpi: rank ", rank_, ": no group of ", ranks.size(), " ranks: ", mpi_text(code));
  }
  MPI_Comm_set_errhandler(group->comm, MPI_ERRORS_RETURN);
}

void MpiMesh::Batch::post(const Message& message, bool sends) {
  const auto [comm, peer] = mesh_.address_of(message);
  const auto lock = mesh_.turn();
  const int tag = mpi_tag(message.tag, mesh_.tag_bound_);
  for (size_t at = 0; at < message.bytes; at += kPiece) {
    const int bytes = static_cast<int>(std::min(kPiece, message.bytes - at));
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = sends ? MPI_Isend(message.data + at, bytes, MPI_BYTE, peer, tag, comm, &request)
                           : MPI_Irecv(message.data + at, bytes, MPI_BYTE, peer, tag, comm, &request);
    if (code != MPI_SUCCESS) fail(MeshError::Cause::kBroken, {message.peer}, mpi_text(code));
    requests_.push_back(request);
    pieces_.push_back({message.peer, bytes, sends});
    ++open_;
    bytes_ += static_cast<size_t>(bytes);
  }
}

// Makes progress on the requests, and returns how many have ended.
int MpiMesh::Batch::poll() {
  int count = 0;
  const auto lock = mesh_.turn();
  const int code =
      MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, done_.data(), statuses_.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) fail(MeshError::Cause::kBroken, waited_for(), mpi_text(code));
  for (int k = 0; k < count; ++k) {
    MPI_Status& status = statuses_[static_cast<size_t>(k)];
    if (code == MPI_SUCCESS) status.MPI_ERROR = MPI_SUCCESS;  // MPI sets it only along with MPI_ERR_IN_STATUS
    finish_request(done_[static_cast<size_t>(k)], status);
  }
  return count;
}

void MpiMesh::Batch::finish_request(int index, const MPI_Status& status) {
  const Piece& piece = pieces_[static_cast<size_t>(index)];
  if (status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING) {
    fail(MeshError::Cause::kBroken, {piece.peer}, mpi_text(status.MPI_ERROR));
  }
  --open_;
  int bytes = piece.bytes;
  if (!piece.sends) MPI_Get_count(&status, MPI_BYTE, &bytes);
  if (bytes != piece.bytes) {
    fail(MeshError::Cause::kBroken, {piece.peer}, cat("a message of ", bytes, " bytes came, not of ", piece.bytes));
  }
}

void MpiMesh::Batch::wait(const Patience& patience) {
  done_.resize(requests_.size());
  statuses_.resize(requests_.size());
  Backoff backoff(bytes_);
  while (true) {
    if (mesh_.broken_) throw MeshError(MeshError::Cause::kAborted, {}, "the exchange was aborted");
    if (open_ == 0) return;
    if (poll() > 0) continue;
    if (patience.over()) fail(MeshError::Cause::kTimeout, waited_for(), "MPI: timed out");
    if (const nanoseconds nap = backoff.pause(); nap.count() > 0) mesh_.nap(nap);
  }
}

std::vector<int> MpiMesh::Batch::waited_for() const {
  std::vector<int> peers;
  for (size_t k = 0; k < requests_.size(); ++k) {
    if (requests_[k] != MPI_REQUEST_NULL) peers.push_back(pieces_[k].peer);
  }
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

// Cancels receives that have not begun, so that MPI no longer uses their memory. All other requests are left to MPI.
void MpiMesh::Batch::cancel() {
  const auto lock = mesh_.turn();
  for (size_t k = 0; k < requests_.size(); ++k) {
    MPI_Request& request = requests_[k];
    if (request == MPI_REQUEST_NULL) continue;
    if (!pieces_[k].sends) MPI_Cancel(&request);
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) MPI_Request_free(&request);
  }
}

// Initialises MPI if it was not before, and asks how many threads it allows.
std::pair<bool, int> initialise() {
  int initialised = 0, finalised = 0, threads = MPI_THREAD_SINGLE;
  MPI_Finalized(&finalised);
  if (finalised != 0) throw ConfigError("backend mpi: MPI was finalised already; it can't start twice in a process");
  MPI_Initialized(&initialised);
  if (initialised != 0) {
    MPI_Query_thread(&threads);
  } else if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &threads); code != MPI_SUCCESS) {
    throw CommError("backend mpi: MPI does not start: ", mpi_text(code));
  }
  return {initialised == 0, threads};
}

Mesh* make_mesh(const MpiOptions& options) {
  const auto [ours, threads] = initialise();
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != options.size) {
    throw ConfigError("backend mpi: rank ", options.rank, " is one of ", options.size, " ranks, and MPI knows ", size,
                      "; start all ranks by one mpirun -n ", options.size, ", or by srun with MPI");
  }
  if (threads < MPI_THREAD_SERIALIZED) {
    throw ConfigError(
        "backend mpi: MPI was started for one thread; start it with MPI_Init_thread(MPI_THREAD_MULTIPLE)");
  }
  MPI_Comm comm = MPI_COMM_NULL;
  const int code = MPI_Comm_split(MPI_COMM_WORLD, 0, options.rank, &comm);  // ranks are the world's, and tags its own
  if (code != MPI_SUCCESS) throw CommError("backend mpi: rank ", options.rank, ": ", mpi_text(code));
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return new MpiMesh({comm, ours, threads < MPI_THREAD_MULTIPLE});
}

}  // namespace
}  // namespace lockstep::comm

lockstep::comm::Mesh* lockstep_make_mpi_mesh(const lockstep::comm::MpiOptions& options) {
  return lockstep::comm::make_mesh(options);
}

const char* lockstep_plugin_build() { return LOCKSTEP_PLUGIN_BUILD; }
