#include "lockstep/checkpoint/contents/numbers.h"

#include <ATen/ATen.h>

namespace lockstep::checkpoint {

at::Tensor flattened(const at::Tensor& tensor) { return tensor.detach().cpu().contiguous().view({-1}); }

Numbers::Numbers(const at::Tensor& flat, int64_t begin, int64_t count) : count_(count) {
  at::Tensor part = flat.narrow(0, begin, count);
  // Of types that libtorch converts to no other the bits are taken.
  if (part.scalar_type() == at::kBits16) {
    part = part.view(at::kUInt16);
  } else if (at::isBitsType(part.scalar_type()) || part.scalar_type() == at::kFloat4_e2m1fn_x2) {
    part = part.view(at::kByte);
  }
  if (part.is_complex()) {
    kind_ = Kind::kComplex;
    wide_ = part.to(at::kComplexDouble).contiguous();
  } else if (part.is_floating_point()) {
    kind_ = Kind::kReal;
    wide_ = part.to(at::kDouble).contiguous();
  } else {
    kind_ = part.scalar_type() == at::kUInt64 ? Kind::kUnsigned : Kind::kSigned;
    // The same bits: numbers of 2^63 and more become negative ones, and are read as what they were.
    wide_ = kind_ == Kind::kUnsigned ? part.view(at::kLong) : part.to(at::kLong).contiguous();
  }
  if (wide_.scalar_type() == at::kLong) {
    wholes_ = wide_.const_data_ptr<int64_t>();
  } else {
    reals_ = static_cast<const double*>(wide_.const_data_ptr());
  }
}

}  // namespace lockstep::checkpoint
