#include "lockstep/comm/network/message_exchange.h"

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

struct Header {
  int64_t elements = 0;
  int32_t dtype = 0;
  int32_t spare = 0;

  explicit Header(const at::Tensor& tensor)
      : elements(tensor.numel()), dtype(static_cast<int32_t>(tensor.scalar_type())) {}
  bool operator==(const Header&) const = default;
};

std::string text_of(const Header& header) {
  return cat('[', header.elements, "] ", c10::toString(static_cast<at::ScalarType>(header.dtype)));
}

[[noreturn]] void throw_difference(int from, const Header& sent, int to, const Header& expected, int tag) {
  throw DesyncError("rank ", from, " sent ", text_of(sent), " to rank ", to, ", which expected ", text_of(expected),
                    " (tag ", tag, "); both ends must name the same size and dtype");
}

}  // namespace

std::string message_label(const Call& call) {
  return cat(name_of(call.kind), call.kind == OpKind::kSend ? " to rank " : " from rank ", call.peer, ", tag ",
             call.tag);
}

void run_message(Exchange& exchange, const Call& call) {
  const bool sends = call.kind == OpKind::kSend;
  const at::Tensor& tensor = sends ? call.input : call.output;
  const Header own(tensor);
  Header other = own;
  const std::vector<Piece> header{{call.peer, sends ? &own : &other, sizeof own}};
  const std::vector<Piece> answer{{call.peer, sends ? &other : &own, sizeof own}};
  const std::vector<Piece> data{{call.peer, tensor.data_ptr(), tensor.nbytes()}};
  if (sends) {
    exchange(header, {});
    exchange({}, answer);
    if (own != other) throw_difference(exchange.self(), own, call.peer, other, call.tag);
    return exchange(data, {});
  }
  exchange({}, header);
  exchange(answer, {});
  if (own != other) throw_difference(call.peer, other, exchange.self(), own, call.tag);
  exchange({}, data);
}

}  // namespace lockstep::comm
