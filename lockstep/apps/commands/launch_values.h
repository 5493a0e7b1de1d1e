// The forms of values that `lockstep launch` takes from torchrun. Pure functions; all throw ConfigError.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace lockstep::apps {

// "3" or "0:3,1:1" of --redirects and --tee: streams (rank_layout.h) by local rank.
std::map<int, int> read_streams(const std::string& flag, const std::string& text, int nproc);

// "0,2": local ranks below `most`.
std::vector<int> read_numbers(const std::string& flag, const std::string& text, int most);

// "apple,pear": texts; a double comma stands for a comma.
std::vector<std::string> read_texts(const std::string& text);

// "a,b": words without blanks around them. Throws for an empty one.
std::vector<std::string> read_words(const std::string& flag, const std::string& text);

// "3" or "2:4" of --nnodes.
struct NodeRange {
  int least = 1, most = 1;
};
NodeRange read_nodes(const std::string& text);

// The whole number that a text is; nothing for another one, and for none.
std::optional<int> whole(const std::optional<std::string>& text);
// The value of an option, "--lanes", in a program's words; nothing if it is not there.
std::optional<std::string> value_in(const std::vector<std::string>& words, const std::string& option);

struct HostPort {
  std::string host;
  int port = 0;  // 0: a free one
};
// "host:port", "[::1]:port" or "host" with `port_if_none`.
HostPort read_endpoint(const std::string& flag, const std::string& text, int port_if_none);

// "join_timeout=60,…" of --rdzv-conf. Keys that torchrun knows and that mean nothing here are passed over.
struct RendezvousConf {
  double timeout = 600;         // seconds to wait for nodes
  double last_call = 5;         // seconds to wait for more than the fewest
  std::optional<bool> is_host;  // of c10d: whether this node has the endpoint
  std::string protocol = "http", ca_file, cert_file, key_file, user, password;  // etcd's

  std::chrono::milliseconds timeout_ms() const {
    return std::chrono::milliseconds(static_cast<int64_t>(timeout * 1000));
  }
};
RendezvousConf read_rendezvous_conf(const std::string& text);

// Throws unless each of these names is a signal that the launcher passes on.
void check_signals(const std::string& text);

}  // namespace lockstep::apps
