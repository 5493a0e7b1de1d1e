#include "lockstep/apps/commands/train_nodes.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "lockstep/apps/commands/launch_values.h"
#include "lockstep/base/error.h"
#include "lockstep/parallel/options/lanes.h"

namespace lockstep::apps {
namespace {

using Words = std::vector<std::string>;

constexpr std::array<std::string_view, 9> kNodeFlags = {"nnodes",        "node-rank", "master-addr",
                                                        "master-port",   "rdzv-id",   "rdzv-backend",
                                                        "rdzv-endpoint", "rdzv-conf", "local-addr"};

// "--node_rank=1" is "node-rank"; "" is no option.
std::string name_of(const std::string& word) {
  if (!word.starts_with("--")) return "";
  std::string name = word.substr(2, word.find('=') - 2);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

bool is_node_flag(const std::string& word) {
  return std::find(kNodeFlags.begin(), kNodeFlags.end(), name_of(word)) != kNodeFlags.end();
}

// Takes an option with its value out of the words; nothing if it is not there.
std::optional<std::string> take(Words& words, std::string_view name) {
  const auto at = std::find_if(words.begin(), words.end(), [&](const auto& word) { return name_of(word) == name; });
  if (at == words.end()) return std::nullopt;
  const size_t equals = at->find('=');
  const bool apart = equals == std::string::npos;
  if (apart && at + 1 == words.end()) throw ConfigError(*at, ": expected a value after it");
  const std::string value = apart ? *(at + 1) : at->substr(equals + 1);
  words.erase(at, at + (apart ? 2 : 1));
  return value;
}

bool has(const Words& words, std::string_view name) {
  return std::any_of(words.begin(), words.end(), [&](const auto& word) { return name_of(word) == name; });
}

}  // namespace

std::optional<std::vector<std::string>> launch_of_train(const std::vector<std::string>& words, std::string (*worker)(),
                                                        int cores) {
  if (std::none_of(words.begin(), words.end(), is_node_flag)) return std::nullopt;
  if (has(words, "help") || std::find(words.begin(), words.end(), "-h") != words.end()) return std::nullopt;
  Words rest = words, line;
  if (has(rest, "detach")) {
    throw ConfigError("--detach and --nnodes: a node's launcher stays in the foreground; start it by nohup, or by the ",
                      "cluster's manager");
  }
  for (const std::string_view name : kNodeFlags) {
    if (const auto value = take(rest, name)) line.push_back("--" + std::string(name) + '=' + *value);
  }
  const std::string backend = value_in(line, "--rdzv-backend").value_or("");
  const std::string range = value_in(line, "--nnodes").value_or("");
  const bool at_etcd = backend.starts_with("etcd") || (backend == "c10d" && range.find(':') != std::string::npos);
  const int lanes = whole(value_in(rest, "--lanes")).value_or(0);
  if (at_etcd && lanes == 0) {
    throw ConfigError("--rdzv-backend ", backend,
                      ": the number of ranks may change, and --lanes says how many lanes they share; ",
                      "add it, as in --lanes 16 (a --config, or the run that is resumed, is not read here)");
  }
  // Where a file says more, the ranks' lanes and device are not known here.
  const bool is_known =
      value_in(rest, "--device").value_or("cpu") == "cpu" && !has(rest, "resume") && !has(rest, "config");
  const int nodes = std::max(1, whole(value_in(line, "--nnodes")).value_or(1));
  const int fitting = is_known ? parallel::fitting_nproc(cores, lanes, nodes) : 0;
  const std::string nproc = take(rest, "nproc").value_or(fitting > 0 ? cat(fitting) : "auto");
  if (nproc.find(':') != std::string::npos) {
    throw ConfigError("--nproc ", nproc, ": expected a number or auto on several nodes");
  }
  line.push_back("--nproc-per-node=" + nproc);
  const std::string restarts = take(rest, "max-restarts").value_or(at_etcd ? "3" : "0");
  line.push_back("--max-restarts=" + restarts);
  // The launcher's, and the ranks', which they are told as well.
  for (const char* both : {"--grace", "--timeout"}) {
    if (const auto value = value_in(rest, both)) line.push_back(cat(both, '=', *value));
  }
  line.push_back(worker());
  line.emplace_back("train");
  line.insert(line.end(), rest.begin(), rest.end());
  return line;
}

const char* const kTrainNodesHelp = R"(
Several nodes (one such line on each; lockstep launch --help says more):
  --nnodes N|MIN:MAX          nodes; MIN:MAX with etcd or c10d
  --node-rank K               this node's number
  --master-addr HOST, --master-port PORT
                              node 0's
  --rdzv-backend c10d|etcd, --rdzv-endpoint HOST:PORT, --rdzv-id NAME, --rdzv-conf K=V,…, --local-addr HOST
                              as launch takes them; with MIN:MAX, or etcd, nodes may come and go, and
                              --max-restarts is 3
)";

}  // namespace lockstep::apps
