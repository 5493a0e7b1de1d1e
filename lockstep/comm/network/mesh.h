// Point-to-point messages between the ranks of a world, as a network library moves them. All else that a network
// backend does (collectives, the fold's order, checks) is built on this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "lockstep/base/clock.h"

namespace lockstep::comm {

struct Message {
  int peer;      // a rank of the mesh
  uint32_t tag;  // below 2^31; only messages of one tag, and of one length, meet
  std::byte* data;
  size_t bytes;  // at least 1
};

// Why an exchange ended early. It never leaves the network backend, which knows what was under way.
class MeshError : public std::runtime_error {
 public:
  enum class Cause { kTimeout, kBroken, kAborted };

  MeshError(Cause cause, std::vector<int> peers, const std::string& text)
      : std::runtime_error(text), cause_(cause), peers_(std::move(peers)) {}
  Cause cause() const { return cause_; }
  // The ranks whose messages did not come or whose connection broke; may be empty.
  const std::vector<int>& peers() const { return peers_; }

 private:
  Cause cause_;
  std::vector<int> peers_;
};

class Mesh {
 public:
  virtual ~Mesh() = default;

  virtual const char* name() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // For people: "gloo over eth0 (10.0.0.2)".
  virtual std::string describe() const = 0;

  // Sends and receives all of these; returns when every receive has arrived and the sends' memory may be used again.
  // A send may wait for its receive. Any number of threads at once. Throws MeshError; no exchange works after one.
  virtual void exchange(std::span<const Message> sends, std::span<const Message> receives,
                        const Deadline& deadline) = 0;

  // Ends all exchanges under way, and later ones at once. Any thread.
  virtual void abort() noexcept = 0;
};

}  // namespace lockstep::comm
