#include "lockstep/comm/network/gloo_threads.h"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <typeinfo>

#include "lockstep/base/error.h"
#include "lockstep/base/run_main.h"
#include "lockstep/base/text.h"

namespace lockstep::comm {
namespace {

struct User {
  int rank;
  std::function<bool(const std::string&)> lose;
};

// The process's users. It outlives all threads.
struct Users {
  std::mutex mutex;
  std::map<const GlooUser*, User> users;
  std::terminate_handler before = nullptr;
};

Users& all() {
  static auto* users = new Users;
  return *users;
}

// The text of the exception under way; empty if it is none of Gloo's. Its types are known by their names alone: those
// of Gloo's headers are of another version than libtorch's own.
std::string gloo_error_under_way() {
  const std::exception_ptr error = std::current_exception();
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& each) {
    const bool is_gloos = std::string_view(typeid(each).name()).starts_with("N4gloo");
    return is_gloos ? gloo_message(each) : "";
  } catch (...) {
    return {};
  }
}

// Tells all users; whether there are any.
bool tell_users(const std::string& why) {
  const std::lock_guard lock(all().mutex);
  for (const auto& [user, each] : all().users) {
    if (each.lose(why)) continue;
    end_process(CommError("rank ", each.rank, ": gloo lost a connection (", why,
                          "): a peer died, or the network did; see the other ranks' logs"));
  }
  return !all().users.empty();
}

[[noreturn]] void on_terminate() {
  const std::string why = gettid() == getpid() ? "" : gloo_error_under_way();
  if (!why.empty() && tell_users(why)) {
    for (;;) pause();
  }
  if (all().before != nullptr) all().before();
  std::abort();
}

}  // namespace

std::string gloo_message(const std::exception& error) {
  const std::string_view text = error.what();
  const size_t end = text.starts_with('[') ? text.find("] ") : std::string_view::npos;
  return first_line(end == std::string_view::npos ? text : text.substr(end + 2));
}

GlooUser::GlooUser(int rank, std::function<bool(const std::string& why)> lose) {
  const std::lock_guard lock(all().mutex);
  if (all().before == nullptr) all().before = std::set_terminate(on_terminate);
  all().users.emplace(this, User{rank, std::move(lose)});
}

GlooUser::~GlooUser() {
  const std::lock_guard lock(all().mutex);
  all().users.erase(this);
}

}  // namespace lockstep::comm
