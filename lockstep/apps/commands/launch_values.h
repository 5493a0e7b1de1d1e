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

// "3" or "3:3" of --nnodes. A range of two numbers is refused, for nodes that come and go can't be had.
int read_nodes(const std::string& text);

struct HostPort {
  std::string host;
  int port = 0;  // 0: a free one
};
// "host:port", "[::1]:port" or "host" with `port_if_none`.
HostPort read_endpoint(const std::string& flag, const std::string& text, int port_if_none);

// "join_timeout=60,…" of --rdzv-conf: the time to wait for nodes. Keys that torchrun knows and that mean nothing here
// are passed over.
std::chrono::milliseconds read_rendezvous_timeout(const std::string& text);

// Throws unless each of these names is a signal that the launcher passes on.
void check_signals(const std::string& text);

}  // namespace lockstep::apps
