#include "lockstep/comm/network/message_exchange.h"

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

struct Header {
  int64_t elements = 0;
  uint64_t salt = 0;  // of group and tag, of which the message's own tag is a hash
  int32_t dtype = 0;
  int32_t tag = 0;

  Header(const at::Tensor& tensor, uint64_t channel, int user_tag)
      : elements(tensor.numel()), salt(channel), dtype(static_cast<int32_t>(tensor.scalar_type())), tag(user_tag) {}
  bool operator==(const Header&) const = default;
};

std::string text_of(const Header& header) {
  return cat('[', header.elements, "] ", c10::toString(static_cast<at::ScalarType>(header.dtype)), " (tag ", header.tag,
             ')');
}

[[noreturn]] void throw_difference(const Exchange& exchange, int from, const Header& sent, int to,
                                   const Header& expected) {
  const auto name = [&](int member) { return exchange.members().ranks[static_cast<size_t>(member)]; };
  throw DesyncError("rank ", name(from), " sent ", text_of(sent), " to rank ", name(to), ", which expected ",
                    text_of(expected), "; both ends must name the same size, dtype and tag");
}

}  // namespace

void run_message(Exchange& exchange, const Call& call) {
  const bool sends = call.kind == OpKind::kSend;
  const at::Tensor& tensor = sends ? call.input : call.output;
  const Header own(tensor, exchange.salt(), call.tag);
  Header other = own;
  const std::vector<Piece> header{{call.peer, sends ? &own : &other, sizeof own}};
  const std::vector<Piece> answer{{call.peer, sends ? &other : &own, sizeof own}};
  const std::vector<Piece> data{{call.peer, tensor.data_ptr(), tensor.nbytes()}};
  if (sends) {
    exchange(header, {});
    exchange({}, answer);
    if (own != other) throw_difference(exchange, exchange.self(), own, call.peer, other);
    return exchange(data, {});
  }
  exchange({}, header);
  exchange(answer, {});
  if (own != other) throw_difference(exchange, call.peer, other, exchange.self(), own);
  exchange({}, data);
}

}  // namespace lockstep::comm
