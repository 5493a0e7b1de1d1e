// What a line of `lockstep launch` comes to on this machine. Pure but for what LaunchMachine asks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/apps/commands/launch_options.h"
#include "lockstep/apps/commands/launch_values.h"
#include "lockstep/base/gpus.h"
#include "lockstep/base/topology.h"
#include "lockstep/launch/etcd/epoch.h"
#include "lockstep/launch/etcd/etcd_client.h"
#include "lockstep/launch/node_handshake.h"
#include "lockstep/launch/rank_layout.h"
#include "lockstep/rendezvous/place/tcp_sockets.h"

namespace lockstep::apps {

struct LaunchMachine {
  int cores = 1;
  CountGpus gpus = visible_gpus;    // asked only where it matters
  LaunchCommand::Lookup variables;  // CUDA_VISIBLE_DEVICES, PYTHON_EXEC, and what says which node this is
  std::function<bool(const std::string& host)> is_own = rendezvous::is_this_machine;
  std::vector<int> (*gpu_nodes)() = numa_nodes_of_gpus;  // these two for --numa-binding alone
  std::function<Topology()> topology = Topology::of_this_machine;
};

// Several nodes that meet at etcd, and may come and go.
struct ElasticPlan {
  launch::EtcdOptions etcd;
  std::optional<HostPort> own_etcd;  // where one of the nodes runs it, the one whose address that is
  std::optional<bool> is_host;       // whether this is that node; nothing: its address says so
  launch::EpochLimits limits;
  std::string address;   // this node's, for the others; empty: the host's name
  double timeout = 600;  // seconds to wait for nodes
};

struct LaunchPlan {
  std::vector<std::string> command;  // the program as it is to be found (find_program), then its arguments
  int nproc = 1;
  int max_restarts = 0;
  launch::RankLayout layout;  // with several nodes: their handshake completes it
  // layout.cpus of so many processes, where an epoch has fewer than `nproc` here.
  std::function<std::vector<std::vector<int>>(int nproc)> cpus_of;
  std::vector<std::string> without_effect;         // flags that were given and mean nothing here: "--start-method fork"
  std::optional<launch::NodeHandshake> handshake;  // with several nodes; without this node's ports
  std::optional<ElasticPlan> elastic;              // with etcd, in place of a handshake
};

// Throws ConfigError that names the flag, what was understood and what to type: a number that is none, a flag that
// can't be served here, more GPUs than are visible, two flags that contradict each other.
LaunchPlan plan_launch(const LaunchOptions& options, const LaunchMachine& machine);

}  // namespace lockstep::apps
