// The epochs of a run whose nodes come and go: which nodes take part from when on, and why the next epoch begins. Pure.
//
// Every node's launcher sees the same keys in etcd and comes to the same decision; the eldest node writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::launch {

// A launcher that is there, as long as its lease lives.
struct Node {
  std::string id;       // no other launcher has it
  std::string host;     // for people
  std::string address;  // where its ranks can be reached
  int nproc = 1;
  std::vector<int> ports;  // free ones: the first for a store that all ranks meet at, then one for each rank
  int before = 0;          // the last epoch that was over when it came
  int64_t joined = 0;      // the order in which nodes came: the revision in which its key was made; not encoded
  int64_t revision = 0;    // of its key; not encoded

  std::string encode() const;
  static std::optional<Node> decode(const std::string& text);
};

struct Epoch {
  int number = 0;           // from 1
  std::string run;          // the id of the first epoch's first node: tells runs with one id of the user's apart
  int restarts = 0;         // the epochs before it that have failed
  std::vector<Node> nodes;  // in the order of their ranks, as they were when it began, each with its ranks of the epoch
  bool ended = false;       // the run is over
  int exit_code = 0;        // then
  std::string why;          // for people: why it began, or the run has ended
  int64_t furthest = -1;    // step that was known of those before it
  int stalled = 0;          // how many of them in a row, up to the last one, got no further
  int64_t revision = 0;     // of its key; not encoded

  const Node* find(const std::string& id) const;
  std::string encode() const;
  static std::optional<Epoch> decode(const std::string& text);
};

// How a node's ranks of an epoch have ended.
struct NodeOutcome {
  std::string node;
  int exit_code = 0;
  bool stopped = false;  // because of another node, and not by themselves
  bool asked = false;    // somebody has asked the run to stop there
  bool repeats = false;  // the same would happen again
  std::string text;      // for people
  int64_t step = -1;     // the furthest that is known; -1: none is

  std::string encode() const;
  static std::optional<NodeOutcome> decode(const std::string& text);
};

struct EpochLimits {
  int least = 1, most = 1;  // nodes
  int max_restarts = 0;
  double last_call = 5;  // seconds without another node, after which fewer than `most` begin
  int lanes = 0;         // of the run: as many ranks take part as these can be divided by; 0: unknown, and all may
};

struct EpochView {
  std::vector<Node> nodes;            // that are there, by `joined`
  std::optional<Epoch> epoch;         // the last one
  std::vector<NodeOutcome> outcomes;  // of that epoch
  double quiet = 0;                   // seconds since a node came or went
};

// The members of the epoch that are not there any more.
std::vector<Node> lost_nodes(const EpochView& view);
// Why the ranks of the epoch can't go on, for people; empty: they can, or the epoch is over.
std::string broken(const EpochView& view);
// Whether these are ranks that have given up waiting for others, and no more is known.
bool broken_for_a_peer(const EpochView& view);
// What the eldest node is to write; nothing: all wait.
std::optional<Epoch> next_epoch(const EpochView& view, const EpochLimits& limits);

}  // namespace lockstep::launch
