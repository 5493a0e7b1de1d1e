// The mesh: point-to-point messages between the ranks of a world, carried by a network library. Collectives, the fold's
// order and the checks of a network backend are built on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "lockstep/comm/network/patience.h"

namespace lockstep::comm {

struct Message {
  int peer;      // a rank of the mesh
  uint32_t tag;  // below 2^31; a send matches a receive only if their tags and lengths are equal
  std::byte* data;
  size_t bytes;   // at least 1
  int group = 0;  // the number of the group whose message it is, which the tag has, too (exchange.h)
};

// The reason why an exchange failed. It never leaves the network backend, which turns it into an Error that names the
// call.
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
  // The mesh in words: "gloo over eth0 (10.0.0.2)".
  virtual std::string describe() const = 0;

  // Sends and receives all of these messages. Returns when every receive has arrived and the sends' memory may be
  // reused. A send may wait for its receive. Any number of threads may call at once; they block SIGPIPE
  // (base/sigpipe.h), which a write to a broken connection raises. Throws MeshError, after which no exchange works any
  // more.
  virtual void exchange(std::span<const Message> sends, std::span<const Message> receives,
                        const Patience& patience) = 0;

  // Prepares the exchanges of a group of these ranks, all of which call it at once. Group 0, of all ranks, needs none.
  // A number may be used again for another group once the former has ended. For a library that keeps its groups apart
  // by more than tags.
  virtual void open_group(int /*number*/, const std::vector<int>& /*ranks*/) {}

  // Called now and then: makes exchanges fail whose connection broke without the network library telling them. Returns
  // at once. Any thread that blocks SIGPIPE.
  virtual void check() noexcept = 0;

  // Makes all exchanges under way and all later ones fail at once. Any thread.
  virtual void abort() noexcept = 0;
};

}  // namespace lockstep::comm
