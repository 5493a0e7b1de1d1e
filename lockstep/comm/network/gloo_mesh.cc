#include "lockstep/comm/network/gloo_mesh.h"

#include <ATen/ops/from_blob.h>

#include <atomic>
#include <mutex>
#include <set>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/sigpipe.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/network/interfaces.h"
#include "lockstep/comm/quiet_c10d.h"

namespace lockstep::comm {
namespace {

using Group = c10d::ProcessGroupGloo;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// Gloo's error without its beginning, a line of Gloo's source: "[…/pair.cc:547] ".
std::string message_of(const std::exception& error) {
  const std::string_view text = error.what();
  const size_t end = text.starts_with('[') ? text.find("] ") : std::string_view::npos;
  return first_line(end == std::string_view::npos ? text : text.substr(end + 2));
}

class GlooMesh final : public Mesh {
 public:
  GlooMesh(c10::intrusive_ptr<Group> group, std::string text) : group_(std::move(group)), text_(std::move(text)) {}

  const char* name() const override { return "gloo"; }
  int rank() const override { return group_->getRank(); }
  int size() const override { return group_->getSize(); }
  std::string describe() const override { return text_; }

  void exchange(std::span<const Message> sends, std::span<const Message> receives, const Deadline& deadline) override {
    Batch batch(*this);
    for (const Message& message : receives) batch.post(message, /*sends=*/false);
    for (const Message& message : sends) batch.post(message, /*sends=*/true);
    batch.wait(deadline);
  }

  void abort() noexcept override {
    const std::lock_guard lock(mutex_);
    broken_ = true;
    for (const auto& work : works_) work->abort();
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
      if (mesh_.broken_) throw aborted();
      const int tag = static_cast<int>(message.tag);
      WorkPtr work = guarded(message.peer, [&] {
        return sends ? mesh_.group_->send(bytes, message.peer, tag) : mesh_.group_->recv(bytes, message.peer, tag);
      });
      mesh_.works_.insert(work);
      works_.emplace_back(std::move(work), message.peer);
    }

    void wait(const Deadline& deadline) {
      for (const auto& [work, peer] : works_) {
        const bool arrived = guarded(peer, [&, each = work] {
          if (deadline.passed()) throw std::runtime_error("Timed out");
          return each->wait(deadline.left_ms());
        });
        if (!arrived) throw aborted();
      }
    }

   private:
    static MeshError aborted() { return {MeshError::Cause::kAborted, {}, "the exchange was aborted"}; }

    // c10d's and Gloo's exceptions become MeshErrors.
    template <typename Act>
    auto guarded(int peer, Act act) -> decltype(act()) {
      try {
        return act();
      } catch (const std::exception& error) {
        const std::string text = message_of(error);
        if (mesh_.broken_) throw aborted();
        mesh_.broken_ = true;
        const bool late = text.find("imed out") != std::string::npos || text.find("imeout") != std::string::npos;
        throw MeshError(late ? MeshError::Cause::kTimeout : MeshError::Cause::kBroken, {peer}, text);
      }
    }

    GlooMesh& mesh_;
    std::vector<std::pair<WorkPtr, int>> works_;
  };

  c10::intrusive_ptr<Group> group_;
  std::string text_;
  std::mutex mutex_;
  std::set<WorkPtr> works_;
  std::atomic<bool> broken_ = false;
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
    throw CommError("rank ", options.rank, ": gloo could not connect the ", options.size, " ranks: ", message_of(error),
                    "; see whether all were started, and whether --interface names the network that joins them");
  }
}

}  // namespace lockstep::comm
