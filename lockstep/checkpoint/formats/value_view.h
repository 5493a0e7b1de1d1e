// Reads a Value with errors that say where: "run.pt: optimizer/param_groups/0/lr: expected a number, found a string".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// A Value and the path that led to it. Borrows the Value, which must outlive it. Every accessor throws DataError,
// naming file and path, if the value is not what is asked for.
class ValueView {
 public:
  // `file` names the whole in errors ("run.pt").
  ValueView(const Value& value, std::string file) : value_(&value), file_(std::move(file)) {}

  ValueView operator[](const Key& key) const;           // of a dict; an absent key is an error
  std::optional<ValueView> find(const Key& key) const;  // of a dict; nothing if the key is absent or its value None
  std::vector<ValueView> items() const;                 // of a list or tuple

  bool boolean() const;
  int64_t integer() const;  // a number with a zero fraction passes
  double number() const;    // of either kind, whole or not
  const std::string& text() const;
  const at::Tensor& tensor() const;  // in memory: if its elements are still in a file, they are read now
  const Dict& dict() const;

  const Value& value() const { return *value_; }
  const std::string& file() const { return file_; }
  // "run.pt: optimizer/state/0", for errors of the caller's own.
  std::string where() const;

 private:
  ValueView step(const Value& value, const std::string& name) const;
  [[noreturn]] void wrong(std::string_view expected) const;

  const Value* value_;
  std::string file_;
  std::string path_;
};

}  // namespace lockstep::checkpoint
