// The part of a network's parameters that one server keeps.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::parallel {

// A range of elements of all parameters that are trained, one after the other, which is cut into parts of nearly equal
// numbers. Frozen ones are each worker's own.
class ServedPart {
 public:
  // Throws ConfigError for a part without elements, which names the server, and for a trained parameter of complex
  // numbers.
  ServedPart(const std::vector<at::Tensor>& parameters, int server, int servers);

  int64_t elements() const { return elements_; }
  // What both ends have to agree on.
  std::string text() const { return text_; }

  // fp32 pieces of a flat tensor of elements(), one for each parameter that the part reaches into.
  std::vector<at::Tensor> pieces_of(const at::Tensor& flat) const;
  size_t pieces() const { return pieces_.size(); }
  // Copies between a flat fp32 tensor on the CPU and the parameters, or their gradients. The latter returns a byte for
  // each piece, 0 for one without a gradient.
  void take(const std::vector<at::Tensor>& parameters, const at::Tensor& flat) const;
  std::string take_gradients(const std::vector<at::Tensor>& parameters, const at::Tensor& flat) const;
  void give(const std::vector<at::Tensor>& parameters, const at::Tensor& flat) const;

 private:
  struct Piece {
    size_t parameter;
    int64_t from, count;  // elements of it
    int64_t at;           // where they lie in the flat tensor
  };
  std::vector<Piece> pieces_;
  int64_t elements_ = 0;
  std::string text_;
};

}  // namespace lockstep::parallel
