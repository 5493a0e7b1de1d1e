// The two lines of the launchers' handshake (node_handshake.h). Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/node_handshake.h"

namespace lockstep::launch {

// A node's first line: "lockstep-node 1 NODES NODE ADDRESS PORT,… JOB".
struct NodeHello {
  int nodes = 0, node = NodeHandshake::kAsTheyCome;
  std::string address;  // empty: "-"
  std::vector<int> ports;
  std::string job;

  std::string encode() const;
  // Nothing if the line is no hello.
  static std::optional<NodeHello> decode(const std::string& line);
};

// Node 0's answer: "ok NODE FIRST WORLD ENDPOINT,…" or "error CODE TEXT".
struct NodeAnswer {
  NodeTable table;
  int error = 0;  // the exit code; 0: none
  std::string text;

  std::string encode() const;
  static std::optional<NodeAnswer> decode(const std::string& line);
};

}  // namespace lockstep::launch
