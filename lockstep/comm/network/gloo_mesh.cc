#include "lockstep/comm/network/gloo_mesh.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/run_main.h"
#include "lockstep/base/sigpipe.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/network/alarm.h"
#include "lockstep/comm/network/gloo_threads.h"
#include "lockstep/comm/network/interfaces.h"
#include "lockstep/comm/network/short_calls.h"
#include "lockstep/comm/quiet_c10d.h"

namespace lockstep::comm {
namespace {

using Group = c10d::ProcessGroupGloo;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

constexpr int kSentinelTag = std::numeric_limits<int>::max();

// Gloo's own words for a wait that lasted too long. ETIMEDOUT's, "Connection timed out", are no such.
bool says_late(const std::string& text) {
  return text.starts_with("Timed out") || text.starts_with("Application timeout");
}

class GlooMesh final : public Mesh {
 public:
  GlooMesh(c10::intrusive_ptr<Group> group, std::string text)
      : group_(std::move(group)),
        text_(std::move(text)),
        user_(std::in_place, group_->getRank(), [this](const std::string& why) { return lose(why); }) {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      std::vector<at::Tensor> byte{at::empty({1}, at::kByte)};
      sentinels_.emplace(peer, group_->recv(byte, peer, kSentinelTag));
    }
  }
  ~GlooMesh() override {
    user_.reset();
    sentinels_.clear();
    if (lost_) group_.release();  // its destructor would wait for the lost thread
  }

  const char* name() const override { return "gloo"; }
  int rank() const override { return group_->getRank(); }
  int size() const override { return group_->getSize(); }
  std::string describe() const override { return text_; }

  void exchange(std::span<const Message> sends, std::span<const Message> receives, const Patience& patience) override {
    Batch batch(*this);
    for (const Message& message : receives) batch.post(message, /*sends=*/false);
    for (const Message& message : sends) batch.post(message, /*sends=*/true);
    batch.wait(patience);
  }

  // A work is looked at from the second time on: a peer may end in peace right after its last message.
  void check() noexcept override {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || broken_) return;
    for (auto& [work, under_way] : works_) {
      if (++under_way.checks < 2) continue;
      const std::string why = why_broken(under_way.peer);
      if (!why.empty()) {
        broken_peers_[under_way.peer] = why;
        work->abort();
      } else if (std::has_single_bit(under_way.checks)) {
        ping(under_way.peer);
      }
    }
  }

  void abort() noexcept override {
    const std::lock_guard lock(mutex_);
    end_works();
  }

 private:
  // The messages of one exchange, registered for abort() as long as they are under way.
  class Batch {
   public:
    explicit Batch(GlooMesh& mesh) : mesh_(mesh) {}
    ~Batch() {
      const std::lock_guard lock(mesh_.mutex_);
      for (const auto& [work, peer] : works_) mesh_.works_.erase(work);
    }

    void post(const Message& message, bool sends) {
      std::vector<at::Tensor> bytes{at::from_blob(message.data, {static_cast<int64_t>(message.bytes)}, at::kByte)};
      const std::lock_guard lock(mesh_.mutex_);
      if (mesh_.broken_) throw mesh_.failed_ ? *mesh_.failure_ : aborted();
      const ShortCalls::Call call(mesh_.calls_, message.peer);
      const int tag = static_cast<int>(message.tag);
      WorkPtr work = guarded(message.peer, [&] {
        return sends ? mesh_.group_->send(bytes, message.peer, tag) : mesh_.group_->recv(bytes, message.peer, tag);
      });
      mesh_.works_.emplace(work, UnderWay{.peer = message.peer});
      works_.emplace_back(std::move(work), message.peer);
    }

    // A wait that times out in Gloo closes all connections. Gloo therefore gets an end that is far off as long as the
    // patience lasts; at the patience's end the alarm interrupts the wait.
    void wait(const Patience& patience) {
      constexpr std::chrono::milliseconds kFarOff = kLongestWait, kNow{1};
      const auto alarm = mesh_.alarm_.set(patience, [this] { interrupt(); });
      for (const auto& each : works_) {
        const auto wait = [&] { return each.first->wait(patience.over() ? kNow : kFarOff); };
        while (!guarded(each.second, wait) && !has_arrived(each.first, each.second)) {
        }
      }
    }

   private:
    static MeshError aborted() { return {MeshError::Cause::kAborted, {}, "the exchange was aborted"}; }

    // The wait under way, or the next one, returns at once; the message may still arrive.
    void interrupt() {
      if (mesh_.lost_) return;  // nothing of Gloo's may be called
      for (const auto& [work, peer] : works_) work->abort();
    }

    // Called for a wait that was interrupted: whether the message has arrived. Throws if check() or abort() has ended
    // the wait; one that check() has ended closes all connections if the message has not arrived.
    bool has_arrived(const WorkPtr& work, int peer) {
      std::string why;
      {
        const std::lock_guard lock(mesh_.mutex_);
        if (mesh_.failure_) throw *mesh_.failure_;
        const auto found = mesh_.broken_peers_.find(peer);
        if (found == mesh_.broken_peers_.end()) {
          if (mesh_.broken_) throw aborted();
          return false;
        }
        why = found->second;
      }
      bool arrived = false;
      const ShortCalls::Call call(mesh_.calls_, peer);
      try {
        arrived = work->wait(std::chrono::milliseconds(1));
      } catch (const std::exception&) {
      }
      if (arrived) return true;
      mesh_.broken_ = true;
      throw MeshError(MeshError::Cause::kBroken, {peer}, why);
    }

    // c10d's and Gloo's exceptions become MeshErrors.
    template <typename Act>
    auto guarded(int peer, Act act) -> decltype(act()) {
      try {
        return act();
      } catch (const std::exception& error) {
        const std::string text = gloo_message(error);
        if (mesh_.broken_.exchange(true) && !mesh_.failed_) throw aborted();
        throw MeshError(says_late(text) ? MeshError::Cause::kTimeout : MeshError::Cause::kBroken, {peer}, text);
      }
    }

    GlooMesh& mesh_;
    std::vector<std::pair<WorkPtr, int>> works_;
  };

  struct UnderWay {
    int peer;
    uint32_t checks = 0;  // calls of check() that saw it
  };

  // A send that finds its connection broken waits for Gloo's event loop, with a lock for which that waits if a message
  // of another peer has just come. Nobody can end either.
  [[noreturn]] void end_deadlocked(int peer) const {
    end_process(CommError("rank ", rank(), ": the connection to rank ", peer,
                          " seems to be broken, for a message stands still in gloo: the rank may have ended, or the "
                          "network; see its log"));
  }

  // The rest is called with the mutex held.

  // Why the connection to this peer is broken; empty if it is not. Gloo does not tell a message of which a part has
  // travelled; it does tell one that waits from its beginning, as the sentinel always does.
  std::string why_broken(int peer) {
    const WorkPtr& sentinel = sentinels_.at(peer);
    try {
      sentinel->abort();  // ends the wait below at once
      sentinel->wait();
      return {};
    } catch (const std::exception& error) {
      return gloo_message(error);
    }
  }

  // Writes to the connection, for a broken one may show only then: by a reset, if the peer has none any more.
  void ping(int peer) {
    const ShortCalls::Call call(calls_, peer);
    try {
      std::vector<at::Tensor> byte{at::empty({1}, at::kByte)};
      group_->send(byte, peer, kSentinelTag - 1);  // announced, and never received
    } catch (const std::exception&) {              // the next check() says why
    }
  }

  void end_works() {
    broken_ = true;
    for (const auto& [work, under_way] : works_) work->abort();
  }

  // Called on a lost thread of Gloo's, without the mutex: ends all exchanges. Returns whether they have ended; one that
  // needs a lock of the lost thread's does not.
  bool lose(const std::string& why) {
    constexpr std::chrono::seconds kPatience{3};
    const Deadline deadline(kPatience);
    for (; !deadline.passed(); std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock) continue;
      if (!lost_.exchange(true) && !broken_) {
        failure_.emplace(MeshError::Cause::kBroken, peers_broken(), why);
        failed_ = true;
        end_works();
      }
      if (works_.empty()) return true;
    }
    return false;
  }

  std::vector<int> peers_broken() {
    std::vector<int> peers;
    for (const auto& [peer, sentinel] : sentinels_) {
      if (!why_broken(peer).empty()) peers.push_back(peer);
    }
    return peers;
  }

  c10::intrusive_ptr<Group> group_;
  std::string text_;
  std::mutex mutex_;
  std::map<WorkPtr, UnderWay> works_;
  std::map<int, WorkPtr> sentinels_;         // by peer: a receive that never arrives
  std::map<int, std::string> broken_peers_;  // those that check() has found, and why
  std::atomic<bool> broken_ = false;         // no exchange works any more
  std::atomic<bool> lost_ = false;           // a thread of Gloo's stands still
  std::optional<MeshError> failure_;         // of all exchanges, since then
  std::atomic<bool> failed_ = false;         // whether failure_ is there
  Alarm alarm_;
  ShortCalls calls_{[this](int peer) { end_deadlocked(peer); }};
  std::optional<GlooUser> user_;
};

std::shared_ptr<gloo::transport::Device> device_of(const NetworkInterface& interface) {
  return Group::createDeviceForInterface(interface.name, c10d::getDefaultGlooLazyInit());
}

}  // namespace

std::unique_ptr<Mesh> make_gloo_mesh(const MeshOptions& options) {
  const std::vector<NetworkInterface> chosen = choose_interfaces(options.interfaces, options.towards);
  const QuietC10d quiet;
  const SigpipeBlocked blocked;  // for Gloo's threads
  try {
    auto settings = Group::Options::create(options.timeout);
    settings->threads = 1;  // for c10d's own collectives, which nobody calls
    std::string text = "gloo over";
    for (const auto& interface : chosen) {
      settings->devices.push_back(device_of(interface));
      text += cat(' ', interface.name, " (", interface.address, ')');
    }
    return std::make_unique<GlooMesh>(c10::make_intrusive<Group>(options.store, options.rank, options.size, settings),
                                      text);
  } catch (const std::exception& error) {
    throw CommError("rank ", options.rank, ": gloo could not connect the ", options.size,
                    " ranks: ", gloo_message(error),
                    "; see whether all were started, and whether --interface names the network that joins them");
  }
}

}  // namespace lockstep::comm
