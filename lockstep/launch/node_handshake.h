// The handshake of the launchers of several nodes, before any of them starts a rank: node 0 listens at the address that
// later is its rank 0's, hears from each of the others how many ranks it has, and tells all of them the numbers.
// It guards nothing: whoever reaches the port can take part, as with the store that rank 0 opens there.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::launch {

struct NodeHandshake {
  static constexpr int kAsTheyCome = -1;

  int nodes = 1;
  int node = kAsTheyCome;  // this node's number; kAsTheyCome: 0 where `host` is this machine and nobody listens yet
  std::string host;        // of node 0
  int port = 0;
  std::string job;         // nodes of another job are refused
  std::string address;     // this node's, for the others; empty: where node 0 sees it
  std::vector<int> ports;  // of this node's ranks; as many as there are ranks
  std::string node_flag = "--node-rank", nodes_flag = "--nnodes", master_flag = "--master-addr";  // for messages
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
  // Gets a line about who is waited for every few seconds.
  std::function<void(const std::string& line)> say = [](const std::string&) {};
};

// What a node knows after the handshake.
struct NodeTable {
  int node = 0;
  int first_rank = 0, world_size = 0;
  std::vector<std::string> endpoints;  // "address:port" of every rank
};

// Waits until all nodes have come. Throws ConfigError if they don't fit together (two with one number, another number
// of nodes), on all of them, and CommError if one does not come within the timeout. One thread.
NodeTable shake_hands(const NodeHandshake& own);

}  // namespace lockstep::launch
