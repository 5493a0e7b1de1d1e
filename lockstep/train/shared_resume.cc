#include "lockstep/train/shared_resume.h"

#include <ATen/ops/empty.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <iterator>
#include <optional>
#include <sstream>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/path_kind.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/checkpoint/files/step_folder.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/train/folder/run_folder.h"
#include "lockstep/world/once.h"

namespace lockstep::train {
namespace {

constexpr int kAttempts = 10;  // to read a run under way, which removes checkpoints that it no longer keeps
constexpr int64_t kPiece = int64_t{32} << 20;  // bytes that are sent at a time

// A checkpoint's file, open, so that it can be sent whatever becomes of its name.
struct File {
  std::string path;
  Descriptor open;
};

File open_file(const std::string& path) { return {path, Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC))}; }

int64_t read_at(const File& file, int64_t offset, char* to, int64_t most) {
  ssize_t got = 0;
  do {
    got = pread(file.open.get(), to, static_cast<size_t>(most), offset);
  } while (got < 0 && errno == EINTR);
  if (got < 0) throw IoError(file.path, ": can't be read: ", errno_text(errno));
  return got;
}

// Of the file's bytes; empty if it is not there.
std::string hash_of(const File& file) {
  if (!file.open) return "";
  std::vector<char> piece(static_cast<size_t>(kPiece));
  Xxh3 hash;
  int64_t offset = 0;
  while (const int64_t got = read_at(file, offset, piece.data(), kPiece)) {
    hash.add(piece.data(), static_cast<size_t>(got));
    offset += got;
  }
  return hex(hash.value());
}

// What a source would resume from.
struct Candidate {
  int64_t step = -1;  // none
  std::string file;
  std::string hash;       // of its bytes, in a world of several nodes
  bool in_place = false;  // the run goes on in the folder that the file is in

  // As a line that the ranks exchange.
  std::string text() const { return cat(step, ' ', hash.empty() ? "-" : hash, ' ', in_place ? 1 : 0, ' ', file); }
  static Candidate of(const std::string& text) {
    Candidate read;
    std::istringstream words(text);
    words >> read.step >> read.hash >> read.in_place;
    words.get();
    read.file.assign(std::istreambuf_iterator<char>(words), {});
    if (read.hash == "-") read.hash.clear();
    return read;
  }
};

// The rank whose candidate is of the latest step; -1 if there is none.
int owner_of(const std::vector<Candidate>& all) {
  const auto newest =
      std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return newest->step < 0 ? -1 : static_cast<int>(newest - all.begin());
}

std::vector<Candidate> gather(World& world, const Candidate& own) {
  std::vector<Candidate> all;
  for (const std::string& text : comm::gather_texts(world.communicator(), own.text()))
    all.push_back(Candidate::of(text));
  return all;
}

// Sends the owner's file to the ranks that lack it, in memory. A collective.
Descriptor send(World& world, int owner, const File& file, bool lacks) {
  comm::Communicator& comm = world.communicator();
  struct stat about {};
  const bool owns = world.rank() == owner;
  if (owns && fstat(file.open.get(), &about) != 0) throw IoError(file.path, ": can't be read: ", errno_text(errno));
  const int64_t bytes = std::stoll(comm::text_of_rank(comm, owner, cat(about.st_size)));
  Descriptor memory;
  Mapping whole;
  if (lacks) {
    memory = create_memfd("lockstep-checkpoint", static_cast<size_t>(bytes));
    whole = Mapping(memory.get());
  }
  for (int64_t offset = 0; offset < bytes; offset += kPiece) {
    const int64_t size = std::min(kPiece, bytes - offset);
    const at::Tensor piece = at::empty({size}, at::kByte);
    auto* data = static_cast<char*>(piece.mutable_data_ptr());
    if (owns && read_at(file, offset, data, size) != size) throw IoError(file.path, ": has changed while it was read");
    comm.broadcast(piece, owner);
    if (lacks) std::copy(data, data + size, whole.at<char>(static_cast<size_t>(offset)));
  }
  return memory;
}

class SharedResume {
 public:
  SharedResume(const std::string& resume, World& world, const RunDisks& disks, const std::string& out,
               const checkpoint::ReadOptions& options)
      : resume_(resume), world_(world), disks_(disks), out_(out), options_(options) {}

  // Nothing if the file that was chosen is gone, where all see one disk.
  std::optional<ResumedCheckpoint> read() {
    propose();
    const auto all = gather(world_, own_);
    const int owner = owner_of(all);
    if (owner < 0) refuse();
    const Candidate& chosen = all[static_cast<size_t>(owner)];
    const bool is_there = world_.rank() == owner || look(chosen);
    if (!comm::holds_on_all(world_.communicator(), is_there)) {
      if (!spans_nodes()) return std::nullopt;
      Descriptor memory = send(world_, owner, file_, !is_there);
      if (!is_there) take(chosen, std::move(memory));
    }
    read_->damaged = std::move(damaged_);
    return std::move(read_);
  }

 private:
  bool spans_nodes() const { return world_.place().local_size != world_.size(); }

  // Each source reads what it has, while the others wait.
  void propose() {
    once(world_, disks_.sources, [this] {
      try {
        read_ = read_resumed(resume_, options_);
        damaged_ = std::move(read_->damaged);
        file_ = open_file(read_->file);
        own_ = {read_->state.step, read_->file, spans_nodes() ? hash_of(file_) : "",
                same_place(run_of(read_->file), out_)};
      } catch (...) {
        failed_ = std::current_exception();
      }
    });
    // Its own error, as it is: the others find it gone.
    if (failed_ && disks_.sources.size() == 1) std::rethrow_exception(failed_);
  }

  [[noreturn]] void refuse() {
    together(world_.communicator(), [this] {
      if (failed_ && world_.rank() == disks_.sources.front()) std::rethrow_exception(failed_);
    });
    throw BugError("no source has a checkpoint, nor an error");
  }

  // Whether this rank's node has the very file, which is read then.
  bool look(const Candidate& chosen) {
    read_.reset();  // this rank's own proposal: not both in memory
    const File file = open_file(chosen.file);
    if (!file.open || (spans_nodes() && hash_of(file) != chosen.hash)) return false;
    try {
      read_ = read_resumed(chosen.file, options_);
    } catch (const DataError&) {
      if (is_there(chosen.file)) throw;
      return false;
    }
    if (read_->state.step != chosen.step) return false;
    read_->in_place = chosen.in_place;
    return true;
  }

  // Reads what has been received.
  void take(const Candidate& chosen, Descriptor memory) {
    const std::string received = cat("/proc/self/fd/", memory.get());
    const bool keeps = chosen.in_place && RunDisks::has(disks_.savers, world_.rank());
    constexpr int kKeepAll = 0;
    const std::string file =
        keeps ? checkpoint::StepFolder(RunFiles{out_}.checkpoints(), kKeepAll).adopt(chosen.step, received) : received;
    // A damaged one of its name has been replaced.
    std::erase_if(damaged_, [&](const auto& each) { return keeps && same_place(each.path, file); });
    read_ = read_resumed(file, options_);
    read_->file = keeps ? file : chosen.file;
    read_->in_place = chosen.in_place;
    if (!keeps) read_->memory = std::move(memory);
  }

  const std::string& resume_;
  World& world_;
  const RunDisks& disks_;
  const std::string& out_;
  const checkpoint::ReadOptions& options_;
  Candidate own_;
  File file_;
  std::optional<ResumedCheckpoint> read_;
  std::vector<checkpoint::CheckpointStore::Damaged> damaged_;  // newer ones that this rank has met
  std::exception_ptr failed_;
};

}  // namespace

ResumedCheckpoint read_resumed(const std::string& resume, World& world, const RunDisks& disks, const std::string& out,
                               const checkpoint::ReadOptions& options) {
  if (world.size() == 1) return read_resumed(resume, options);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (auto read = SharedResume(resume, world, disks, out, options).read()) return *std::move(read);
  }
  throw IoError("--resume ", resume,
                ": the run replaced its checkpoints while the ranks read them; name an older file");
}

NamedCheckpoint find_checkpoint(const std::string& name, const std::string& path, World& world) {
  NamedCheckpoint named;
  once(world, OnceScope::kWorld, [&] { named = find_checkpoint(name, path); });
  // A file is each rank's own; of a folder all take what rank 0 has found.
  const std::string found = comm::text_of_rank(world.communicator(), 0, named.file == path ? "" : named.file);
  named.file = found.empty() ? path : found;
  return named;
}

}  // namespace lockstep::train
