#include "lockstep/apps/commands/launch_nodes.h"

#include <algorithm>

#include "lockstep/apps/commands/launch_values.h"
#include "lockstep/base/error.h"
#include "lockstep/config/values.h"
#include "lockstep/launch/unique_id.h"

namespace lockstep::apps {
namespace {

constexpr int kTorchPort = 29500, kC10dPort = 29400, kPaddlePort = 6070, kEtcdPort = 2379;

// What a cluster's manager says of this node's number, where it has started one launcher a node.
std::optional<int> number_by_manager(const LaunchCommand::Lookup& variables, int nodes) {
  struct Manager {
    const char* number;
    const char* count;  // of what is numbered: as many as there are nodes
  };
  constexpr Manager kManagers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"PMI_RANK", "PMI_SIZE"},
                                   {"SLURM_PROCID", "SLURM_NTASKS"},
                                   {"RANK", "WORLD_SIZE"},
                                   {"JOB_COMPLETION_INDEX", nullptr}};
  for (const auto& [number, count] : kManagers) {
    const auto node = whole(variables(number));
    if (node && (count == nullptr || whole(variables(count)) == nodes)) return node;
  }
  return std::nullopt;
}

void check_number(const std::string& flag, int node, int nodes) {
  if (node < nodes) return;
  throw ConfigError("--", flag, ' ', node, ": with --nnodes ", nodes, " the nodes are ",
                    nodes == 1 ? "0 alone" : cat("0 to ", nodes - 1), "; correct one of them");
}

// A port has an option of its own.
std::string host_of_master(const std::string& address) {
  const HostPort at = read_endpoint("master-addr", address, 0);
  if (at.port == 0) return at.host;
  throw ConfigError("--master-addr ", address, ": the port has an option of its own; type --master-addr ", at.host,
                    " --master-port ", at.port);
}

void refuse_backend(const std::string& backend) {
  const std::vector<std::string> known = {"static", "c10d", "etcd", "etcd-v2"};
  if (std::find(known.begin(), known.end(), backend) != known.end()) return;
  throw ConfigError("--rdzv-backend ", backend, ": expected static, c10d or etcd",
                    config::did_you_mean(backend, known));
}

// The endpoints of etcd that the line names; none: the nodes meet elsewhere. Paddle's way is --master etcd://HOST:PORT.
std::vector<std::string> etcd_endpoints(const LaunchOptions& options) {
  constexpr std::string_view kPaddles = "etcd://";
  if (options.style == LaunchStyle::kPaddle) {
    if (!options.master.starts_with("etcd:")) return {};
    if (!options.master.starts_with(kPaddles)) {
      throw ConfigError("--master ", options.master, ": expected etcd://HOST:PORT");
    }
    return read_words("master", options.master.substr(kPaddles.size()));
  }
  if (!options.rdzv_backend.starts_with("etcd")) return {};
  if (options.rdzv_endpoint.empty()) {
    throw ConfigError("--rdzv-backend ", options.rdzv_backend,
                      ": where is etcd? Type --rdzv-endpoint HOST:2379[,HOST:2379]");
  }
  return read_words("rdzv-endpoint", options.rdzv_endpoint);
}

// Whether torchrun's c10d must do more than number the nodes: they start anew together, or come and go. Then one of
// them runs an etcd, as torchrun's runs a store.
bool meets_at_own_etcd(const LaunchOptions& options, int max_restarts) {
  if (options.rdzv_backend != "c10d" || options.rdzv_endpoint.empty() || options.standalone) return false;
  const NodeRange nodes = read_nodes(options.nnodes);
  return nodes.most > 1 && (nodes.least < nodes.most || max_restarts > 0);
}

// What lockstep-worker is told by --lanes; 0: nothing, or it is another program.
int lanes_of(const std::vector<std::string>& program) {
  if (program.empty() || !("/" + program[0]).ends_with("/lockstep-worker")) return 0;
  return std::max(0, whole(value_in(program, "--lanes")).value_or(0));
}

// What an etcd that several runs share needs, and what says the same in another way.
void check_shared_etcd(const LaunchOptions& options, const LaunchPlan& plan) {
  const bool is_paddles = options.style == LaunchStyle::kPaddle;
  if (!options.has(is_paddles ? "job-id" : "rdzv-id")) {
    throw ConfigError(is_paddles ? "--master " : "--rdzv-backend ", is_paddles ? options.master : options.rdzv_backend,
                      ": etcd holds many runs; type ", is_paddles ? "--job_id" : "--rdzv-id",
                      " NAME, the same on all nodes of this one");
  }
  if (options.standalone || !options.ips.empty() || !options.master_addr.empty()) {
    throw ConfigError(options.standalone    ? "--standalone"
                      : options.ips.empty() ? "--master-addr"
                                            : "--ips",
                      ": with etcd nodes find each other there; leave it out");
  }
  if (plan.layout.run_id.find('/') != std::string::npos) {
    throw ConfigError(is_paddles ? "--job_id " : "--rdzv-id ", plan.layout.run_id, ": type a name without slashes");
  }
  if (options.node_rank || options.paddle_rank) {
    throw ConfigError(is_paddles ? "--rank" : "--node-rank",
                      ": with etcd nodes are numbered as they come; leave it out");
  }
}

// What is the same wherever etcd runs.
void plan_epochs(const LaunchOptions& options, const RendezvousConf& conf, LaunchPlan& plan, ElasticPlan elastic) {
  const bool is_paddles = options.style == LaunchStyle::kPaddle;
  const NodeRange nodes = read_nodes(options.nnodes);
  elastic.limits = {
      .least = nodes.least, .most = nodes.most, .max_restarts = plan.max_restarts, .last_call = conf.last_call};
  elastic.limits.lanes = lanes_of(options.program);
  elastic.address = is_paddles ? options.host : options.local_addr;
  elastic.timeout = conf.timeout;
  plan.layout.nodes = nodes.most;
  plan.layout.run_id = is_paddles ? options.job_id : options.rdzv_id;
  plan.elastic = std::move(elastic);
}

void plan_elastic(const LaunchOptions& options, const std::vector<std::string>& endpoints, LaunchPlan& plan) {
  const bool is_paddles = options.style == LaunchStyle::kPaddle;
  const RendezvousConf conf = read_rendezvous_conf(options.rdzv_conf);
  const std::string flag = is_paddles ? "master" : "rdzv-endpoint";
  ElasticPlan elastic;
  for (const std::string& text : endpoints) {
    const size_t scheme_end = text.find("://");
    const std::string scheme = scheme_end == std::string::npos ? conf.protocol : text.substr(0, scheme_end);
    std::string place = scheme_end == std::string::npos ? text : text.substr(scheme_end + 3);
    if (place.ends_with('/')) place.pop_back();
    const HostPort at = read_endpoint(flag, place, kEtcdPort);
    if (scheme != "http" && scheme != "https") {
      throw ConfigError("--", flag, ' ', text, ": expected HOST:", kEtcdPort, ", or http:// or https:// before it");
    }
    elastic.etcd.endpoints.push_back(launch::etcd_url(scheme, at.host, at.port));
  }
  elastic.etcd.user = conf.user;
  elastic.etcd.password = conf.password;
  elastic.etcd.http.ca_file = conf.ca_file;
  elastic.etcd.http.cert_file = conf.cert_file;
  elastic.etcd.http.key_file = conf.key_file;
  plan_epochs(options, conf, plan, std::move(elastic));
  check_shared_etcd(options, plan);
}

// Nodes meet by endpoint and name, which may be left out. torchrun's c10d takes no note of these flags.
void plan_own_etcd(const LaunchOptions& options, LaunchPlan& plan) {
  const HostPort at = read_endpoint("rdzv-endpoint", options.rdzv_endpoint, kC10dPort);
  if (at.port == 0) {
    throw ConfigError("--rdzv-endpoint ", options.rdzv_endpoint,
                      ": several nodes need a port that all of them know; type --rdzv-endpoint ", at.host, ':',
                      kC10dPort);
  }
  if (options.node_rank) plan.without_effect.push_back(cat("--node-rank ", *options.node_rank));
  if (!options.master_addr.empty()) plan.without_effect.push_back("--master-addr " + options.master_addr);
  if (options.master_port) plan.without_effect.push_back(cat("--master-port ", *options.master_port));
  const RendezvousConf conf = read_rendezvous_conf(options.rdzv_conf);
  ElasticPlan elastic;
  elastic.own_etcd = at;
  elastic.is_host = conf.is_host;
  elastic.etcd.endpoints.push_back(launch::etcd_url("http", at.host, at.port));
  plan_epochs(options, conf, plan, std::move(elastic));
  std::replace(plan.layout.run_id.begin(), plan.layout.run_id.end(), '/', '_');
}

// The first of the ranks' ports that Paddle's flags name; nothing if they name none.
std::optional<int> first_port_of(const LaunchOptions& options) {
  if (options.start_port && options.started_port && options.start_port != options.started_port) {
    throw ConfigError("--start_port ", *options.start_port, " and --started_port ", *options.started_port,
                      ": both are the first port; leave one of them out");
  }
  return options.start_port ? options.start_port : options.started_port;
}

// A node's ranks at ports from the first on.
void add_endpoints(const std::string& host, int first_port, LaunchPlan& plan) {
  if (first_port + plan.nproc > 65536) {
    throw ConfigError("--start-port ", first_port, ": there are no ", plan.nproc,
                      " ports from there on; type a lower one");
  }
  for (int rank = 0; rank < plan.nproc; ++rank) plan.layout.endpoints.push_back(cat(host, ':', first_port + rank));
}

// Where several nodes meet, and the number that this one has; kAsTheyCome: it gets one.
struct Meeting {
  HostPort at;
  int node = launch::NodeHandshake::kAsTheyCome;
  std::string node_flag, master_flag, address;
};

void need_number(const Meeting& meeting, int nodes) {
  if (meeting.node != launch::NodeHandshake::kAsTheyCome) return;
  throw ConfigError("--nnodes ", nodes, ": which of them is this one? Type ", meeting.node_flag, " 0 here, ",
                    meeting.node_flag,
                    " 1 on the next, or --rdzv-backend c10d --rdzv-endpoint HOST:PORT to number them as they come");
}

Meeting meeting_of_torchrun(const LaunchOptions& options, const LaunchMachine& machine, int nodes) {
  const bool is_static = options.rdzv_backend == "static";
  Meeting meeting{{}, launch::NodeHandshake::kAsTheyCome, "--node-rank", "--rdzv-endpoint", options.local_addr};
  if (!options.rdzv_endpoint.empty()) {
    meeting.at = read_endpoint("rdzv-endpoint", options.rdzv_endpoint, is_static ? kTorchPort : kC10dPort);
  } else if (is_static) {
    meeting.at = {host_of_master(options.master_addr.empty() ? "127.0.0.1" : options.master_addr),
                  options.master_port.value_or(kTorchPort)};
    meeting.master_flag = "--master-addr";
  } else {
    throw ConfigError("--rdzv-backend c10d: where do the nodes meet? Type --rdzv-endpoint HOST:PORT");
  }
  if (options.node_rank) {
    meeting.node = *options.node_rank;
  } else if (is_static) {
    meeting.node = number_by_manager(machine.variables, nodes).value_or(launch::NodeHandshake::kAsTheyCome);
    need_number(meeting, nodes);
  }
  return meeting;
}

Meeting meeting_by_ips(const LaunchOptions& options, const LaunchMachine& machine, LaunchPlan& plan) {
  const auto ips = read_words("ips", options.ips);
  const int first_port = first_port_of(options).value_or(kPaddlePort);
  for (const auto& ip : ips) add_endpoints(ip, first_port, plan);
  Meeting meeting{{ips[0], first_port}, options.paddle_rank.value_or(-1), "--rank", "--ips", options.host};
  if (meeting.node >= 0) return meeting;
  const auto own = std::find_if(ips.begin(), ips.end(), [&](const std::string& ip) {
    return options.host.empty() ? machine.is_own(ip) : ip == options.host;
  });
  if (own == ips.end()) {
    throw ConfigError("--ips ", options.ips, ": none of them is ",
                      options.host.empty() ? "this machine's" : cat("--host ", options.host),
                      "; type --rank K for this node's place among them, from 0");
  }
  meeting.node = static_cast<int>(own - ips.begin());
  return meeting;
}

Meeting meeting_of_paddle(const LaunchOptions& options, const LaunchMachine& machine, int nodes, LaunchPlan& plan) {
  if (!options.ips.empty()) return meeting_by_ips(options, machine, plan);
  if (const auto first_port = first_port_of(options)) {
    throw ConfigError("--start_port ", *first_port, ": of several nodes it goes with --ips; leave it out");
  }
  if (options.master.empty()) {
    throw ConfigError("--nnodes ", nodes, ": where do the nodes meet? Type --master HOST:PORT, an address of node 0's");
  }
  return {read_endpoint("master", options.master, kPaddlePort), options.paddle_rank.value_or(-1), "--rank", "--master",
          options.host};
}

void plan_one_node(const LaunchOptions& options, LaunchPlan& plan) {
  launch::RankLayout& layout = plan.layout;
  if (options.style == LaunchStyle::kPaddle) {
    if (!options.master.empty()) {
      const HostPort at = read_endpoint("master", options.master, 0);
      layout.master_addr = at.host;
      layout.master_port = at.port;
    }
    if (options.paddle_rank.value_or(0) > 0) check_number("rank", *options.paddle_rank, 1);
    if (const auto first_port = first_port_of(options)) add_endpoints(layout.master_addr, *first_port, plan);
    return;
  }
  if (options.node_rank) check_number("node-rank", *options.node_rank, 1);
  if (options.rdzv_backend == "c10d" || !options.rdzv_endpoint.empty()) {
    const HostPort at =
        read_endpoint("rdzv-endpoint", options.rdzv_endpoint.empty() ? "localhost:0" : options.rdzv_endpoint, 0);
    layout.master_addr = options.local_addr.empty() ? at.host : options.local_addr;
    layout.master_port = at.port;
    return;
  }
  if (!options.master_addr.empty()) layout.master_addr = host_of_master(options.master_addr);
  layout.master_port = options.master_port.value_or(0);
}

int count_nodes(const LaunchOptions& options) {
  if (!options.ips.empty() && !options.master.empty()) {
    throw ConfigError("--master ", options.master, " and --ips ", options.ips,
                      ": both say where the nodes are; leave one of them out");
  }
  const auto [least, nodes] = read_nodes(options.nnodes);
  if (least < nodes) {
    throw ConfigError("--nnodes ", options.nnodes,
                      ": nodes that come and go meet at etcd; type --rdzv-backend etcd "
                      "--rdzv-endpoint HOST:2379, or c10d and HOST:29400 where HOST is to run it, or --nnodes ",
                      nodes, " for all of them");
  }
  if (options.ips.empty()) return nodes;
  const int ips = static_cast<int>(read_words("ips", options.ips).size());
  if (options.has("nnodes") && nodes != ips) {
    throw ConfigError("--nnodes ", options.nnodes, " and --ips ", options.ips, ": these are ", ips,
                      " nodes; correct one of them");
  }
  return ips;
}

}  // namespace

void plan_nodes(const LaunchOptions& options, const LaunchMachine& machine, LaunchPlan& plan) {
  refuse_backend(options.rdzv_backend);
  if (const auto endpoints = etcd_endpoints(options); !endpoints.empty()) {
    return plan_elastic(options, endpoints, plan);
  }
  if (meets_at_own_etcd(options, plan.max_restarts)) return plan_own_etcd(options, plan);
  const auto timeout = read_rendezvous_conf(options.rdzv_conf).timeout_ms();
  const int nodes = count_nodes(options);
  const bool is_paddles = options.style == LaunchStyle::kPaddle;
  launch::RankLayout& layout = plan.layout;
  layout.nodes = nodes;
  layout.run_id = is_paddles ? options.job_id : options.rdzv_id;
  if (options.standalone) {
    if (nodes > 1)
      throw ConfigError("--standalone and --nnodes ", options.nnodes,
                        ": standalone is one node; leave one of them out");
    layout.master_addr = options.local_addr.empty() ? "localhost" : options.local_addr;
    layout.run_id = launch::unique_id();
    return;
  }
  if (nodes == 1 && !(is_paddles && !options.ips.empty())) return plan_one_node(options, plan);
  const Meeting meeting =
      is_paddles ? meeting_of_paddle(options, machine, nodes, plan) : meeting_of_torchrun(options, machine, nodes);
  layout.master_addr = meeting.at.host;
  layout.master_port = meeting.at.port;
  check_number(meeting.node_flag.substr(2), meeting.node, nodes);
  if (nodes == 1) return;
  if (meeting.at.port == 0) {
    throw ConfigError(meeting.master_flag, ' ', meeting.at.host,
                      ":0: several nodes need a port that all of them know; type ", meeting.master_flag, ' ',
                      meeting.at.host, ':', is_paddles ? kPaddlePort : kC10dPort);
  }
  if (plan.max_restarts > 0) {
    throw ConfigError(is_paddles ? "--max-restart " : "--max-restarts ", plan.max_restarts,
                      ": several nodes start anew together where they meet at etcd; type --rdzv-backend etcd "
                      "--rdzv-endpoint HOST:2379, or c10d and HOST:29400 where HOST is to run it, or leave it out, and "
                      "let the cluster's manager start the job anew");
  }
  plan.handshake = {.nodes = nodes,
                    .node = meeting.node,
                    .host = meeting.at.host,
                    .port = meeting.at.port,
                    .job = layout.run_id,
                    .address = meeting.address,
                    .node_flag = meeting.node_flag,
                    .master_flag = meeting.master_flag,
                    .timeout = timeout};
}

}  // namespace lockstep::apps
