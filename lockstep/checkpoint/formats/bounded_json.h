// JSON from outside, one value after the other. No tree is built, nesting is bounded, and an object that has a name
// twice is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::checkpoint {

// What read_json() calls for each value. Its functions may throw.
class JsonVisitor {
 public:
  // The names of the objects around a value, outermost first, with its own; the items of an array have the array's.
  using Path = std::vector<std::string>;

  virtual ~JsonVisitor() = default;
  virtual void object(const Path& path) = 0;                          // begins
  virtual void array(const Path& path) = 0;                           // begins
  virtual void text(const Path& path, const std::string& value) = 0;  // UTF-8, checked
  virtual void number(const Path& path, uint64_t value) = 0;
  // Any other: null, true, false, a number that is negative, larger than 2^64 - 1 or no whole one. `what` names it.
  virtual void other(const Path& path, std::string_view what) = 0;
};

constexpr size_t kMaxJsonNames = 1u << 18;      // of an object
constexpr size_t kMaxJsonNameBytes = 1u << 16;  // of a name

// Throws a Fault for what is no JSON, for names that come twice, are too many or too long, and for more than `depth`
// objects and arrays in each other.
void read_json(std::string_view text, size_t depth, JsonVisitor& visitor);

// The names of a path, joined by "/", for messages.
std::string path_text(const JsonVisitor::Path& path);

}  // namespace lockstep::checkpoint
