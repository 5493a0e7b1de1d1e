#include "lockstep/comm/round_to_wire.h"

#include "lockstep/comm/reduce.h"

namespace lockstep::comm {

void round_to_wire(at::ScalarType wire, const at::Tensor& values) {
  const at::Tensor plain = values.detach();
  if (plain.is_cpu()) {
    round_to_wire(wire, plain.mutable_data_ptr<float>(), plain.numel());
  } else {
    plain.copy_(plain.to(wire));
  }
}

}  // namespace lockstep::comm
