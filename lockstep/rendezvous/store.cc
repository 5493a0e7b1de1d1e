#include "lockstep/rendezvous/store.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <sstream>
#include <string_view>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/base/log.h"
#include "lockstep/base/remote_error.h"
#include "lockstep/base/shared_memory.h"
#include "lockstep/base/sigpipe.h"
#include "lockstep/base/text.h"

namespace lockstep::rendezvous {
namespace {

using std::chrono::milliseconds;

// c10d gets this time to notice a timeout by itself, because its own error says more.
constexpr std::chrono::seconds kGrace{1};

constexpr const char* kServed = "served";          // rank 0 has opened the store for this program
constexpr const char* kGivenUp = "given up";       // the error of the last rank that has
constexpr const char* kKnow = "know of given up";  // the number of ranks but rank 0 that know it

const char* server_of(const Place& place) { return place.launcher_hosts ? "the launcher" : "rank 0"; }

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList resolve(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(address.port);
  return {getaddrinfo(address.host.c_str(), port.c_str(), &hints, &list) == 0 ? list : nullptr, &freeaddrinfo};
}

// A socket bound to the rendezvous' own address; c10d's own would listen on all networks. None if the host's address is
// not one of this machine's, but that of a service in front of it.
Descriptor bind_to(const Address& address, const addrinfo& addresses) {
  for (const addrinfo* each = &addresses; each != nullptr; each = each->ai_next) {
    Descriptor fd(socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    if (!fd || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) continue;
    if (bind(fd.get(), each->ai_addr, each->ai_addrlen) == 0 && listen(fd.get(), SOMAXCONN) == 0) return fd;
    if (errno == EADDRINUSE || errno == EACCES) {
      throw CommError("tcp://", address.host, ':', address.port, ": rank 0 ", kPortTaken, address.port, ": ",
                      errno_text(errno), "; choose another port (MASTER_PORT)");
    }
  }
  return {};
}

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

CommError not_served(const Place& place, const std::string& why) {
  return CommError("rank ", place.rank, ": waited at ", place.rendezvous, " for ", server_of(place),
                   " until the timeout: ", why, ", or check MASTER_ADDR and MASTER_PORT");
}

// The rendezvous' addresses, or none if its host is unknown at the deadline. A cluster's name service may take a while
// to know a new name.
AddressList resolve_again(const Address& address, const Deadline& deadline) {
  constexpr milliseconds kPause{500};
  for (;;) {
    AddressList addresses = resolve(address);
    if (addresses || deadline.passed()) return addresses;
    poll(nullptr, 0, static_cast<int>(std::min(deadline.left_ms(), kPause).count()));
  }
}

c10::intrusive_ptr<c10d::Store> serve(const Place& place, const Address& address, const Deadline& deadline) {
  const AddressList addresses = resolve_again(address, deadline);
  if (!addresses) throw not_served(place, "the host is unknown");
  c10d::TCPStoreOptions options;
  options.port = address.port;
  options.isServer = true;
  options.waitWorkers = false;
  options.timeout = deadline.left_ms();
  options.useLibUV = false;  // it can't take over a listening socket
  // The machine's own name may resolve to a loopback address, which other nodes can't reach: then listen on all
  // networks.
  const bool closed =
      place.local_size < place.size && !names_loopback(address.host) && is_loopback(*addresses->ai_addr);
  Descriptor fd = closed ? Descriptor() : bind_to(address, *addresses);
  if (fd) options.masterListenFd = fd.release();
  return c10::make_intrusive<c10d::TCPStore>(address.host, options);
}

bool listens(const addrinfo& address, const Deadline& deadline) {
  const Descriptor fd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return false;
  if (connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd connected{fd.get(), POLLOUT, 0};
  poll(&connected, 1, static_cast<int>(std::min(deadline.left_ms(), milliseconds(1000)).count()));
  int error = ETIMEDOUT;
  socklen_t length = sizeof error;
  return (connected.revents & POLLOUT) != 0 && getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 &&
         error == 0;
}

// Waits until the server listens, and says so now and then. c10d by itself would look only once a second.
void wait_for_server(const Place& place, const Address& address, const Deadline& deadline) {
  constexpr int kPollMs = 20;
  double next_line = 3;  // seconds
  const Stopwatch waiting;
  const AddressList addresses = resolve_again(address, deadline);
  if (!addresses) throw not_served(place, "the host is unknown");
  for (;;) {
    for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
      if (listens(*each, deadline)) return;
    }
    if (deadline.passed()) {
      throw not_served(place, cat("nobody listens there; see why ", server_of(place), " is missing"));
    }
    if (waiting.seconds() > next_line) {
      Logger::from_environment(cat("rank ", place.rank))
          .warning("waiting at ", place.rendezvous, " for ", server_of(place),
                   ", which does not listen there yet; for at most ",
                   std::chrono::duration_cast<std::chrono::seconds>(deadline.left_ms()).count(), " s more");
      next_line *= 2;
    }
    poll(nullptr, 0, kPollMs);
  }
}

c10::intrusive_ptr<c10d::Store> join(const Place& place, const Address& address, const Deadline& deadline) {
  wait_for_server(place, address, deadline);
  c10d::TCPStoreOptions options;
  options.port = address.port;
  options.waitWorkers = false;
  options.timeout = deadline.left_ms();
  return c10::make_intrusive<c10d::TCPStore>(address.host, options);
}

// Checks that the file is a store or none yet, so that no other file is overwritten. A store's file begins with the
// length and the name of the counter of its users.
void check_store_file(const std::string& path) {
  constexpr std::string_view kBegin("\x09\0\0\0refcount/", 13);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw ConfigError("rendezvous file://", path, ": no folder ", folder.string(), "; create it, on every rank");
  }
  const auto mistake = [&](const char* what) {
    return ConfigError("rendezvous file://", path, ": the file exists and is ", what, "; name a new file");
  };
  if (!std::filesystem::exists(path, ignored)) return;
  if (!std::filesystem::is_regular_file(path, ignored)) throw mistake("no regular one");
  std::string begin(kBegin.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<size_t>(file.gcount()));  // another rank may be about to write the rest
  if (!kBegin.starts_with(begin)) throw mistake("not a store");
}

c10::intrusive_ptr<c10d::Store> open(const Place& place, const Address& address, const Deadline& deadline) {
  if (address.path.empty()) {
    const bool serves = place.rank == 0 && !place.launcher_hosts;
    return serves ? serve(place, address, deadline) : join(place, address, deadline);
  }
  check_store_file(address.path);
  return c10::make_intrusive<c10d::FileStore>(address.path, -1);
}

// The keys of a launch, and of one program of its command.
std::string prefix_of(const Place& place) {
  return cat("lockstep/", place.job, '/', place.program > 1 ? cat("program ", place.program, '/') : "");
}

// A later program of a command may meet the store of the one before, whose rank 0 has not ended yet: that one is left
// again. Rank 0 says in the store for which program it is.
c10::intrusive_ptr<c10d::Store> open_of_program(const Place& place, const Address& address, const Deadline& deadline) {
  if (place.program == 1) return open(place, address, deadline);
  constexpr int kPauseMs = 50;
  const std::string served = prefix_of(place) + kServed;
  for (;;) {
    try {
      auto store = open(place, address, deadline);
      if (place.rank == 0) store->set(served, "1");
      if (store->check({served})) return store;
    } catch (const Error&) {
      throw;
    } catch (const std::exception&) {  // c10d's: the store ended meanwhile
      if (deadline.passed()) throw;
    }
    if (deadline.passed()) throw not_served(place, "the store there is that of an earlier program of this launch");
    poll(nullptr, 0, kPauseMs);
  }
}

}  // namespace

// Runs a call of c10d's with a deadline. c10d's connections have no timeout once they are made, and a server that is
// stopped or is no store may never answer. So each call has a thread of its own, which is left behind at the deadline.
// c10d's exceptions become CommErrors.
template <typename Call>
std::invoke_result_t<Call> Store::guard(const Deadline& deadline, Call call) const {
  std::packaged_task<std::invoke_result_t<Call>()> task(std::move(call));
  auto result = task.get_future();
  const SigpipeBlocked blocked;
  std::thread thread(std::move(task));
  if (result.wait_for(deadline.left() + kGrace) != std::future_status::ready) {
    thread.detach();
    throw CommError("rank ", place_.rank, ": nothing at ", place_.rendezvous,
                    " answers as a store would; see whether rank 0 hangs or another program is there");
  }
  thread.join();
  try {
    return result.get();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw CommError("rank ", place_.rank, ": the store at ", place_.rendezvous, " failed: ", first_line(error.what()),
                    "; see the other ranks' logs");
  }
}

Store::Store(const Place& place, const Deadline& deadline)
    : place_(place),
      address_(parse_address(place.rendezvous)),
      prefix_(prefix_of(place)),
      store_(guard(deadline,
                   [place, address = address_, deadline] { return open_of_program(place, address, deadline); })) {}

Store::~Store() {
  try {
    store_.reset();
  } catch (...) {  // c10d may fail to sign off; a caller that depends on it calls close()
  }
}

void Store::set(const std::string& key, const std::string& value, const Deadline& deadline) {
  guard(deadline, [store = store_, name = prefix_ + key, value] { store->set(name, value); });
}

std::optional<std::string> Store::get(const std::string& key, const Deadline& deadline) {
  constexpr int kPollMs = 10;  // c10d's own wait() on a file looks once a second
  const std::string name = prefix_ + key, given_up = prefix_ + kGivenUp;
  auto value = guard(deadline, [store = store_, name, given_up, deadline]() -> std::optional<std::string> {
    for (;;) {
      if (store->check({given_up})) return std::nullopt;
      if (store->check({name})) return store->get_to_str(name);
      if (deadline.passed()) return std::nullopt;
      poll(nullptr, 0, kPollMs);
    }
  });
  if (!value) check_given_up(deadline);
  return value;
}

void Store::give_up(const Error& error, const Deadline& deadline) {
  set(kGivenUp, cat(error.exit_code(), " rank ", place_.rank, ": ", error.what()), deadline);
  given_up_ = true;
  if (place_.rank != 0) tell_that_i_know(deadline);
}

void Store::check_given_up(const Deadline& deadline) {
  const auto said = guard(deadline, [store = store_, name = prefix_ + kGivenUp]() -> std::optional<std::string> {
    if (!store->check({name})) return std::nullopt;
    return store->get_to_str(name);
  });
  if (!said) return;
  if (place_.rank != 0 && !given_up_) tell_that_i_know(Deadline(kGrace));
  given_up_ = true;
  std::istringstream in(*said);
  int code = BugError::kExitCode;
  std::string line;
  in >> code;
  std::getline(in >> std::ws, line);
  throw_error(code, line);
}

void Store::tell_that_i_know(const Deadline& deadline) {
  // c10d's FileStore writes to its file once more when it ends, which would bring back the one that rank 0 removes as
  // soon as all know. It stays until the process is gone, and is still reachable then, for those who look for leaks.
  static auto* const kept = new std::vector<c10::intrusive_ptr<c10d::Store>>();
  static std::mutex mutex;
  if (const std::lock_guard lock(mutex); !address_.path.empty()) kept->push_back(store_);
  count(kKnow, 1, deadline);
}

void Store::close_when_all_know(const Deadline& deadline, const std::function<int()>& told) {
  constexpr int kPollMs = 10;
  while (count(kKnow, 0, deadline) + told() < place_.size - 1 && !deadline.passed()) poll(nullptr, 0, kPollMs);
  close();
}

int64_t Store::count(const std::string& key, int64_t more, const Deadline& deadline) {
  return guard(deadline, [store = store_, name = prefix_ + key, more] { return store->add(name, more); });
}

c10::intrusive_ptr<c10d::Store> Store::connect(const std::string& part, const Deadline& deadline) const {
  c10::intrusive_ptr<c10d::Store> store = guard(deadline, [place = place_, address = address_, deadline] {
    Place client = place;
    client.launcher_hosts = true;  // a client, on rank 0 as well
    return open(client, address, deadline);
  });
  return c10::make_intrusive<c10d::PrefixStore>(prefix_ + part, std::move(store));
}

void Store::close() {
  store_.reset();
  if (place_.rank == 0 && !address_.path.empty()) unlink(address_.path.c_str());
}

}  // namespace lockstep::rendezvous
