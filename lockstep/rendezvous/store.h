// The key-value store of the rendezvous: c10d's, served at a TCP address or kept in a file.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <optional>
#include <string>
#include <type_traits>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/rendezvous/place/address.h"
#include "lockstep/rendezvous/place/environment.h"

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
  // Waits for the key's value until the deadline; nothing if it has none by then. Throws as check_given_up().
  std::optional<std::string> get(const std::string& key, const Deadline& deadline);

  // Adds `more` to a counter, which begins at 0, and returns its new value.
  int64_t count(const std::string& key, int64_t more, const Deadline& deadline);

  // Tells all ranks of this launch that this one gives up with `error`, those too that come later.
  void give_up(const Error& error, const Deadline& deadline);
  // Throws the error of a rank that has given up, if there is one, as "rank 2: …", and notes that this rank knows it.
  void check_given_up(const Deadline& deadline);
  bool given_up() const { return given_up_; }  // whether one of the two has told or thrown such an error
  // Rank 0, after a rank has given up: closes the store when all others know it, or at the deadline. `told` says how
  // many have learned it elsewhere so far.
  void close_when_all_know(
      const Deadline& deadline, const std::function<int()>& told = [] { return 0; });

  // Opens another connection to the store, for c10d and for threads that may block in it. Its keys begin with the
  // launch's prefix and `part`. Throws as the constructor.
  c10::intrusive_ptr<c10d::Store> connect(const std::string& part, const Deadline& deadline) const;

  // Closes the connection. Rank 0 closes last, which ends the store.
  void close();

 private:
  template <typename Call>
  std::invoke_result_t<Call> guard(const Deadline& deadline, Call call) const;
  void tell_that_i_know(const Deadline& deadline);  // of a rank that has given up

  Place place_;
  Address address_;
  std::string prefix_;  // of this launch's keys
  c10::intrusive_ptr<c10d::Store> store_;
  bool given_up_ = false;  // whether a rank has, as far as this one knows
};

}  // namespace lockstep::rendezvous
