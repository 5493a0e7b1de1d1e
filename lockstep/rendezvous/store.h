// The key-value store of the rendezvous: c10d's, served at a TCP address or kept in a file.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <optional>
#include <string>
#include <type_traits>

#include "lockstep/base/clock.h"
#include "lockstep/rendezvous/address.h"
#include "lockstep/rendezvous/environment.h"

namespace c10d {
class Store;
}

namespace lockstep::rendezvous {

// One thread.
class Store {
 public:
  // Opens the store at place.rendezvous. Rank 0 serves it unless the launcher does. Throws CommError if it is not
  // served by the deadline or the port is in use, ConfigError if the file can't be such a store.
  Store(const Place& place, const Deadline& deadline);
  ~Store();

  // Sets a key, which belongs to this launch alone: other launches have other prefixes. This and the next two throw
  // CommError if the store is gone or does not answer by the deadline.
  void set(const std::string& key, const std::string& value, const Deadline& deadline);
  // Waits for the key's value until the deadline; nothing if it has none by then.
  std::optional<std::string> get(const std::string& key, const Deadline& deadline);

  // Adds `more` to a counter, which begins at 0, and returns its new value.
  int64_t count(const std::string& key, int64_t more, const Deadline& deadline);

  // Opens another connection to the store, for c10d and for threads that may block in it. Its keys begin with the
  // launch's prefix and `part`. Throws as the constructor.
  c10::intrusive_ptr<c10d::Store> connect(const std::string& part, const Deadline& deadline) const;

  // Closes the connection. Rank 0 closes last, which ends the store.
  void close();

 private:
  template <typename Call>
  std::invoke_result_t<Call> guard(const Deadline& deadline, Call call) const;

  Place place_;
  Address address_;
  std::string prefix_;  // of this launch's keys
  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace lockstep::rendezvous
