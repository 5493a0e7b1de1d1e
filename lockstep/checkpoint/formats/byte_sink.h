// Where written bytes go.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::checkpoint {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Takes all of it, or throws IoError.
  virtual void write(std::string_view bytes) = 0;
};

// Collects in memory.
class StringSink : public ByteSink {
 public:
  void write(std::string_view bytes) override { content.append(bytes); }
  std::string content;
};

}  // namespace lockstep::checkpoint
