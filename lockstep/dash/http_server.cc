#include "lockstep/dash/http_server.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"

namespace lockstep::dash {
namespace {

template <auto free>
struct Freed {
  void operator()(auto* object) const { free(object); }
};
using Base = std::unique_ptr<event_base, Freed<event_base_free>>;
using Http = std::unique_ptr<evhttp, Freed<evhttp_free>>;
using Event = std::unique_ptr<event, Freed<event_free>>;

// "localhost" of "localhost:7007", "::1" of "[::1]:7007".
std::string host_of(std::string text) {
  if (text.starts_with('[')) return text.substr(1, text.find(']') - 1);
  return text.substr(0, text.find(':'));
}

bool is_all(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

int port_of(evhttp_bound_socket* socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(evhttp_bound_socket_get_fd(socket), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

struct HttpServer::State {
  void answer(evhttp_request* request) const {
    const evkeyvalq* const asked = evhttp_request_get_input_headers(request);
    const char* const wanted = evhttp_find_header(asked, "Host");
    const evhttp_uri* const uri = evhttp_request_get_evhttp_uri(request);
    const char* const path = uri != nullptr ? evhttp_uri_get_path(uri) : nullptr;
    HttpAnswer said{.status = 403, .type = "text/plain", .body = "this dashboard answers to its own address alone\n"};
    try {
      if (is_known(wanted == nullptr ? "" : host_of(wanted))) said = answers(path == nullptr ? "" : path);
    } catch (const std::exception& error) {
      said = {.status = HTTP_INTERNAL, .type = "text/plain", .body = cat(error.what(), '\n')};
    }
    evkeyvalq* const headers = evhttp_request_get_output_headers(request);
    if (evhttp_request_get_command(request) == EVHTTP_REQ_HEAD) {
      evhttp_add_header(headers, "Content-Length", cat(said.body.size()).c_str());
      said.body.clear();
    }
    evhttp_add_header(headers, "Content-Type", said.type.c_str());
    evhttp_add_header(headers, "Cache-Control", "no-store");
    evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
    evhttp_add_header(headers, "Content-Security-Policy",
                      "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; "
                      "frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
    const std::unique_ptr<evbuffer, Freed<evbuffer_free>> body(evbuffer_new());
    evbuffer_add(body.get(), said.body.data(), said.body.size());
    evhttp_send_reply(request, said.status, nullptr, body.get());
  }

  bool is_known(const std::string& name) const {
    if (is_all(host)) return true;
    return name == host || name == "localhost" || name == "127.0.0.1" || name == "::1";
  }

  bool listen(int wanted) {
    evhttp_bound_socket* const socket =
        evhttp_bind_socket_with_handle(http.get(), host.c_str(), static_cast<uint16_t>(wanted));
    if (socket == nullptr) return false;
    port = port_of(socket);
    return true;
  }

  std::string host;
  int port = 0;
  std::function<HttpAnswer(const std::string& path)> answers;
  Base base;
  Http http;
  std::vector<Event> signals;
};

HttpServer::HttpServer(const Options& options, std::function<HttpAnswer(const std::string& path)> answer)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.host = options.host;
  state.answers = std::move(answer);
  signal(SIGPIPE, SIG_IGN);                         // of a browser that has gone
  event_set_log_callback([](int, const char*) {});  // errors are told below
  state.base.reset(event_base_new());
  state.http.reset(state.base ? evhttp_new(state.base.get()) : nullptr);
  if (!state.http) throw IoError("the dashboard: no memory, or no descriptors, for a server");
  constexpr int kSeconds = 10, kHeaderBytes = 16 << 10;
  evhttp_set_timeout(state.http.get(), kSeconds);
  evhttp_set_max_headers_size(state.http.get(), kHeaderBytes);
  evhttp_set_max_body_size(state.http.get(), 0);
  evhttp_set_allowed_methods(state.http.get(), EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
  evhttp_set_gencb(
      state.http.get(), [](evhttp_request* request, void* self) { static_cast<State*>(self)->answer(request); },
      &state);
  const int first = options.port == 0 ? kFirstPort : options.port;
  const int last = options.port == 0 ? kFirstPort + kPorts - 1 : first;
  int error = 0;
  for (int port = first; port <= last && state.port == 0; ++port) {
    errno = 0;
    if (!state.listen(port)) error = errno;
    if (error != EADDRINUSE && error != EACCES) break;
  }
  if (state.port != 0) return;
  const std::string why = error == 0 ? "no such address" : errno_text(error);
  throw ConfigError("the dashboard can't listen at ", shown(options.host), ':', first, ": ", why, "; choose another ",
                    error == EADDRINUSE || error == EACCES ? "port" : "host or port");
}

HttpServer::~HttpServer() = default;

std::string HttpServer::url() const {
  const bool is_v6 = state_->host.find(':') != std::string::npos;
  return cat("http://", is_v6 ? "[" : "", state_->host, is_v6 ? "]" : "", ':', state_->port, '/');
}

void HttpServer::run() {
  State& state = *state_;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const auto stop = [](evutil_socket_t, short, void* base) { event_base_loopbreak(static_cast<event_base*>(base)); };
    state.signals.emplace_back(evsignal_new(state.base.get(), number, stop, state.base.get()));
    evsignal_add(state.signals.back().get(), nullptr);
  }
  event_base_dispatch(state.base.get());
}

}  // namespace lockstep::dash
