// The key-value store through which ranks find each other: c10d's, served at a TCP address or kept in a file.
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

class Store {
 public:
  // Opens the store at place.rendezvous; rank 0 serves it, unless the launcher does. Throws CommError if nobody serves
  // it until the deadline or the port is in use, ConfigError if the file can't be such a store.
  Store(const Place& place, const Deadline& deadline);
  ~Store();

  // Keys are this launch's own. Both throw CommError if the store is gone or does not answer until the deadline.
  void set(const std::string& key, const std::string& value, const Deadline& deadline);
  // The value, waited for until the deadline; nothing if there is none by then.
  std::optional<std::string> get(const std::string& key, const Deadline& deadline);

  // Adds to a count, 0 at first, and returns it.
  int64_t count(const std::string& key, int64_t more, const Deadline& deadline);

  // Another connection to the store, for c10d and for threads that may hang in it. Its keys begin with the launch's
  // prefix and `part`. Throws as the constructor.
  c10::intrusive_ptr<c10d::Store> connect(const std::string& part, const Deadline& deadline) const;

  // Ends the use of the store. Rank 0 does so last, and takes it away.
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
