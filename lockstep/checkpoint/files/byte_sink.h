// A destination for written bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::checkpoint {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Writes all of `bytes`, or throws IoError.
  virtual void write(std::string_view bytes) = 0;
};

// Collects the bytes in memory.
class StringSink : public ByteSink {
 public:
  void write(std::string_view bytes) override { content.append(bytes); }
  std::string content;
};

}  // namespace lockstep::checkpoint
