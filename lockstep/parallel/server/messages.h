// What workers and parameter servers say to each other, over TCP.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "lockstep/base/shared_memory.h"

namespace lockstep::parallel {

enum class MessageKind : uint32_t {
  kHello = 1,  // worker: its number, in `clock`; what it would train, in the text
  kWelcome,    // server
  kRefused,    // server: why, in the text
  kPull,       // worker: weights of `clock` or later; clock < 0: the present ones
  kWait,       // server: other workers are waited for
  kWeights,    // server: fp32 of its part, and their clock
  kPush,       // worker: the gradient's fp32 of the server's part, and a byte for each piece that has one (not 0), for
               // `clock`, with its samples and the rate
  kBye,        // worker
  kLook,       // worker, before its kHello
  kOptions,    // server: its options, in the text
};

struct MessageHead {
  static constexpr uint32_t kMagic = 0x4c535053;
  uint32_t magic = kMagic;
  MessageKind kind = MessageKind::kBye;
  int64_t clock = 0;
  double samples = 0, lr = 0;
  uint64_t bytes = 0;  // that follow
};

// Thrown where the other end has closed, or died.
struct ConnectionLost {
  std::string why;
};

// One end of a connection. One thread; close_for_all() may be called by others.
class Connection {
 public:
  // What a wait calls now and then, and throws to end it.
  using OnWait = std::function<void()>;

  explicit Connection(Descriptor socket, OnWait on_wait = {});

  // Both throw ConnectionLost, and what on_wait throws.
  void send(MessageHead head, std::span<const char> bytes = {}, std::span<const char> more = {});
  MessageHead receive();                              // the head alone
  void receive_bytes(std::span<char> to);             // that follow it
  std::string receive_text(const MessageHead& head);  // of at most a few kB

  // Ends what either end waits for. The other end may read the text, if there is one, as last_words(): not where a
  // message is under way to it.
  void close_for_all(const std::string& text = {});
  // What the other end has said before it closed the connection. Waits for a tenth of a second at most, and is the last
  // call.
  std::optional<std::string> last_words();
  const std::string& peer() const { return peer_; }
  uint64_t bytes() const { return bytes_; }  // sent and received
  // monotonic_ns() when bytes moved last, or at touch().
  int64_t moved_ns() const { return moved_ns_; }
  void touch();

 private:
  void wait_for(short events) const;
  void write(std::span<const char> bytes);

  Descriptor socket_;
  OnWait on_wait_;
  std::mutex sending_;  // a whole message
  std::string peer_;
  uint64_t bytes_ = 0;
  int64_t moved_ns_ = 0;
};

// The memory of a contiguous tensor on the CPU, and of a text.
inline std::span<char> bytes_of(const at::Tensor& flat) {
  return {static_cast<char*>(flat.mutable_data_ptr()), flat.nbytes()};
}
inline std::span<const char> bytes_of(const std::string& text) { return {text.data(), text.size()}; }
inline std::span<char> bytes_of(std::string& text) { return {text.data(), text.size()}; }

}  // namespace lockstep::parallel
