// Protection from exceptions on Gloo's own threads. Gloo's event loop answers a peer's message by a write; where that
// write fails with anything but ECONNRESET or EPIPE (ECONNABORTED, ETIMEDOUT, EHOSTUNREACH), Gloo throws on its own
// thread, where nobody can catch, and the process would end with SIGABRT.
//
// A thread that throws stands still instead, with the locks that it holds. Before that it tells all users of Gloo in
// the process, which end their waits: nothing of Gloo's may be called or destroyed any more.
#pragma once

#include <exception>
#include <functional>
#include <string>

namespace lockstep::comm {

// Gloo's error without its beginning, a line of Gloo's source: "[…/pair.cc:547] ".
std::string gloo_message(const std::exception& error);

// A user of Gloo, told of the loss of one of its threads as long as the object lives.
class GlooUser {
 public:
  // `lose` gets the error's text, on the lost thread. It ends this user's calls into Gloo and says whether they have
  // ended; if they do not, the process ends with 69 and one line that names `rank`. The first user installs the
  // protection for the process; a terminate handler that was there before gets all other exceptions, and those of the
  // main thread. Any thread.
  GlooUser(int rank, std::function<bool(const std::string& why)> lose);
  ~GlooUser();
  GlooUser(const GlooUser&) = delete;
  GlooUser& operator=(const GlooUser&) = delete;
};

}  // namespace lockstep::comm
