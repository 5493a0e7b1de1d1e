// What writers of pickles share: plain values in operations that Python reads at protocol 2 and later.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// Writes without a memo, for a file repeats nothing but short names. Throws BugError for a string of 4 GiB or more, and
// for an Opaque value.
class PickleEmitter {
 public:
  virtual ~PickleEmitter() = default;

 protected:
  virtual void put_tensor(const at::Tensor& tensor) = 0;
  virtual void put_bytes(std::string_view bytes) = 0;

  void put(const Value& value);
  void put(bool boolean) { out_ += boolean ? '\x88' : '\x89'; }
  void put(int64_t number);
  void put(double number);
  void put(std::string_view text);
  void put(at::IntArrayRef numbers);  // as a tuple
  void put_none() { out_ += 'N'; }
  void put_global(std::string_view module, std::string_view name);
  template <typename T>
  void put_raw(T number) {
    out_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  std::string out_;  // what was written so far

 private:
  void put(const Key& key);
  void put(const List& items);
  void put(const Tuple& tuple);
  void put(const Dict& dict);
};

}  // namespace lockstep::checkpoint
