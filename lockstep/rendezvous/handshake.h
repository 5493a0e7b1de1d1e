// The packets of the handshake among the ranks of a node. A rank that connects sends Hello. Rank 0 answers with the
// descriptors of the node's memory (kMemory), and with kGo once all ranks are there. Either side may give up at any
// time with a reason (kGivenUp).
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "lockstep/rendezvous/place/environment.h"

namespace lockstep::rendezvous {

// A rank's first packet: who it is, and which world it is in.
struct Hello {
  static constexpr uint32_t kMagic = 0x4c4b4831;  // "LKH1"
  static constexpr uint32_t kVersion = 1;         // of the node memory's layout and of these packets

  uint32_t magic = kMagic;
  uint32_t version = kVersion;
  int32_t rank = 0, size = 0, local_rank = 0, local_size = 0;

  static std::string encode(const Place& place) {
    Hello hello;
    hello.rank = place.rank;
    hello.size = place.size;
    hello.local_rank = place.local_rank;
    hello.local_size = place.local_size;
    return {reinterpret_cast<const char*>(&hello), sizeof hello};
  }
  // Nothing if the bytes are no Hello. Its version may differ from kVersion.
  static std::optional<Hello> decode(const std::string& bytes) {
    Hello hello;
    if (bytes.size() != sizeof hello) return std::nullopt;
    std::memcpy(&hello, bytes.data(), sizeof hello);
    return hello.magic == kMagic ? std::optional(hello) : std::nullopt;
  }
};

enum class NoticeKind : uint32_t { kMemory = 1, kGo = 2, kGivenUp = 3 };

// All other packets.
struct Notice {
  static constexpr size_t kMostBytes = 4096;

  NoticeKind kind = NoticeKind::kGo;
  int32_t exit_code = 0;    // with kGivenUp: the exit code of the Error
  std::string reason = {};  // with kGivenUp: its text

  std::string encode() const {
    const Head head{Hello::kMagic, kind, exit_code};
    return std::string(reinterpret_cast<const char*>(&head), sizeof head) + reason.substr(0, kMostBytes - sizeof head);
  }
  // Nothing if the bytes are no Notice.
  static std::optional<Notice> decode(const std::string& bytes) {
    Head head;
    if (bytes.size() < sizeof head) return std::nullopt;
    std::memcpy(&head, bytes.data(), sizeof head);
    if (head.magic != Hello::kMagic || head.kind < NoticeKind::kMemory || head.kind > NoticeKind::kGivenUp) {
      return std::nullopt;
    }
    return Notice{.kind = head.kind, .exit_code = head.exit_code, .reason = bytes.substr(sizeof head)};
  }

 private:
  struct Head {
    uint32_t magic = 0;
    NoticeKind kind = NoticeKind::kGo;
    int32_t exit_code = 0;
  };
};

}  // namespace lockstep::rendezvous
