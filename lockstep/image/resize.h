// Resizes the pixels of a geometry, with integers alone: the same bits on every machine.
#pragma once

#include <memory>

#include "lockstep/image/geometry.h"
#include "lockstep/image/pixels.h"

namespace lockstep::image {

// Keeps weights and memory from one image to the next. One thread at a time.
class Resizer {
 public:
  Resizer();
  ~Resizer();
  Resizer(Resizer&&) noexcept;
  Resizer& operator=(Resizer&&) noexcept;

  // Writes the geometry's result to `out`. `in` holds the rectangle `held` of the image, which includes what is
  // needed(). Throws DataError if the result has more than 2^28 pixels, and IoError if memory is short.
  void resize(const Pixels& in, const Rect& held, const Geometry& geometry, Filter filter, Pixels& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::image
