#include "lockstep/checkpoint/formats/bounded_json.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "lockstep/checkpoint/formats/byte_cursor.h"
#include "lockstep/checkpoint/formats/printable.h"

namespace lockstep::checkpoint {
namespace {

// nlohmann's parser calls these. It keeps its own state in a vector, so that nesting costs no stack.
class Events : public nlohmann::json_sax<nlohmann::json> {
 public:
  Events(size_t depth, JsonVisitor& visitor) : depth_(depth), visitor_(visitor) {}

  bool null() override { return other("null"); }
  bool boolean(bool value) override { return other(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return other(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    visitor_.number(path_, value);
    return true;
  }
  bool number_float(number_float_t, const string_t& text) override { return other(printable(text)); }
  bool string(string_t& value) override {
    visitor_.text(path_, value);
    return true;
  }
  bool binary(binary_t&) override { return other("bytes"); }

  bool start_object(size_t) override {
    visitor_.object(path_);
    deepen();
    names_.back().emplace();
    path_.emplace_back();
    return true;
  }
  bool key(string_t& name) override {
    if (name.size() > kMaxJsonNameBytes) throw Fault{cat(printable(name, 20), ": a name of ", name.size(), " bytes")};
    path_.back() = name;
    if (names_.back()->size() == kMaxJsonNames) throw Fault{cat("more than ", kMaxJsonNames, " names in an object")};
    if (!names_.back()->insert(name).second) throw Fault{cat(path_text(path_), ": comes twice")};
    return true;
  }
  bool end_object() override {
    names_.pop_back();
    path_.pop_back();
    return true;
  }
  bool start_array(size_t) override {
    visitor_.array(path_);
    deepen();
    return true;
  }
  bool end_array() override {
    names_.pop_back();
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    throw Fault{cat("no JSON at byte ", position)};
  }

 private:
  void deepen() {
    if (names_.size() == depth_) throw Fault{cat("objects and arrays nested more than ", depth_, " deep")};
    names_.emplace_back();
  }
  bool other(std::string_view what) {
    visitor_.other(path_, what);
    return true;
  }

  size_t depth_;
  JsonVisitor& visitor_;
  JsonVisitor::Path path_;
  std::vector<std::optional<std::unordered_set<std::string>>> names_;  // of the open objects; none for an array
};

}  // namespace

void read_json(std::string_view text, size_t depth, JsonVisitor& visitor) {
  Events events(depth, visitor);
  nlohmann::json::sax_parse(text.begin(), text.end(), &events);
}

std::string path_text(const JsonVisitor::Path& path) {
  std::string text;
  for (const std::string& name : path) text += cat(text.empty() ? "" : "/", printable(name));
  return text;
}

}  // namespace lockstep::checkpoint
