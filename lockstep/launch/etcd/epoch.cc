#include "lockstep/launch/etcd/epoch.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/lanes_fit.h"
#include "lockstep/base/text.h"

namespace lockstep::launch {
namespace {

using nlohmann::json;

// So many epochs in a row that get no further are the last ones, however many restarts are left.
constexpr int kMostWithoutProgress = 3;

json to_json(const Node& node) {
  return {{"id", node.id},       {"host", node.host},   {"address", node.address},
          {"nproc", node.nproc}, {"ports", node.ports}, {"before", node.before}};
}

Node node_of(const json& value) {
  return {.id = value.at("id"),
          .host = value.at("host"),
          .address = value.at("address"),
          .nproc = value.at("nproc"),
          .ports = value.at("ports"),
          .before = value.at("before")};
}

// Nothing for a text that `read` can't read.
template <typename Value>
std::optional<Value> decoded(const std::string& text, Value (*read)(const json&)) {
  try {
    return read(json::parse(text));
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::string names(const std::vector<Node>& nodes) {
  std::string text;
  for (const Node& node : nodes) text += cat(text.empty() ? "" : ", ", node.host);
  return text;
}

const NodeOutcome* outcome_of(const EpochView& view, const std::string& id) {
  const auto found = std::ranges::find_if(view.outcomes, [&](const auto& each) { return each.node == id; });
  return found == view.outcomes.end() ? nullptr : &*found;
}

bool is_there(const EpochView& view, const std::string& id) {
  return std::ranges::any_of(view.nodes, [&](const Node& node) { return node.id == id; });
}

// The outcome that the others followed from: that of ranks that have failed by themselves.
const NodeOutcome* failure(const EpochView& view) {
  const NodeOutcome* found = nullptr;
  for (const NodeOutcome& each : view.outcomes) {
    if (each.exit_code == 0 || each.stopped) continue;
    const bool missed_a_peer = each.exit_code == CommError::kExitCode;
    if (found == nullptr || (found->exit_code == CommError::kExitCode && !missed_a_peer)) found = &each;
  }
  return found;
}

Epoch ended(const Epoch& epoch, int exit_code, std::string why) {
  Epoch end = epoch;
  end.ended = true;
  end.exit_code = exit_code;
  end.why = std::move(why);
  return end;
}

// Epoch's `furthest` and `stalled` after the epoch. Where nothing is known of its steps, it may have got further; and
// one that a lost node has ended says nothing of the next.
std::pair<int64_t, int> progress_of(const EpochView& view) {
  const Epoch& epoch = *view.epoch;
  int64_t reached = -1;
  for (const NodeOutcome& each : view.outcomes) reached = std::max(reached, each.step);
  const bool further = reached < 0 || reached > epoch.furthest;
  const bool failed_by_itself = failure(view) != nullptr && lost_nodes(view).empty();
  return {std::max(reached, epoch.furthest), further ? 0 : epoch.stalled + (failed_by_itself ? 1 : 0)};
}

int ranks_on(const std::vector<Node>& nodes) {
  int ranks = 0;
  for (const Node& node : nodes) ranks += node.nproc;
  return ranks;
}

// How many nodes take part, at least and at most.
struct Numbers {
  int least, most;
  bool take(int number) const { return least <= number && number <= most; }
};

// The nodes that have `ranks` ranks together, of which the eldest are in it that can be; nothing if no nodes have.
std::optional<std::vector<Node>> whole_nodes(const std::vector<Node>& all, int ranks, const Numbers& numbers) {
  // can[k][r]: the numbers of nodes, as bits, with which the nodes from the k-th on can have r ranks.
  using Bits = std::vector<bool>;
  const size_t count = all.size(), sums = static_cast<size_t>(ranks) + 1;
  std::vector<std::vector<Bits>> can(count + 1, std::vector<Bits>(sums, Bits(count + 1)));
  can[count][0][0] = true;
  for (size_t k = count; k-- > 0;) {
    const auto own = static_cast<size_t>(all[k].nproc);
    for (size_t sum = 0; sum < sums; ++sum) {
      for (size_t number = 0; number <= count - k; ++number) {
        const bool with = number > 0 && sum >= own && can[k + 1][sum - own][number - 1];
        can[k][sum][number] = with || can[k + 1][sum][number];
      }
    }
  }
  const auto left_fits = [&](size_t k, size_t sum, int before) {
    for (size_t number = 0; number <= count - k; ++number) {
      if (can[k][sum][number] && numbers.take(before + static_cast<int>(number))) return true;
    }
    return false;
  };
  std::vector<Node> chosen;
  auto left = static_cast<size_t>(ranks);
  if (!left_fits(0, left, 0)) return std::nullopt;
  for (size_t k = 0; k < count; ++k) {
    const auto own = static_cast<size_t>(all[k].nproc);
    if (own > left || !left_fits(k + 1, left - own, static_cast<int>(chosen.size()) + 1)) continue;
    chosen.push_back(all[k]);
    left -= own;
  }
  return chosen;
}

// The eldest nodes that can have `ranks` ranks together, with fewer than they could; nothing if they can't.
std::optional<std::vector<Node>> shortened_nodes(const std::vector<Node>& all, int ranks, const Numbers& numbers) {
  std::vector<Node> chosen;
  for (const Node& node : all) {
    if (std::ssize(chosen) == numbers.most) break;
    if (ranks_on(chosen) < ranks || std::ssize(chosen) < numbers.least) chosen.push_back(node);
  }
  if (!numbers.take(static_cast<int>(chosen.size())) || std::ssize(chosen) > ranks) return std::nullopt;
  if (ranks_on(chosen) < ranks) return std::nullopt;
  // As even as their numbers allow, the eldest first.
  std::vector<int> own(chosen.size(), 0);
  for (int given = 0; given < ranks;) {
    for (size_t k = 0; k < chosen.size() && given < ranks; ++k) {
      if (own[k] < chosen[k].nproc) ++own[k], ++given;
    }
  }
  for (size_t k = 0; k < chosen.size(); ++k) chosen[k].nproc = own[k];
  return chosen;
}

// The nodes that train next: those that are there, in the order in which they came, up to the most that are wanted. Of
// lanes that are known, as many ranks take part as they can be divided by: on whole nodes, or, where no nodes have so
// many together, on nodes with fewer ranks than they could have. Where no number will do, all: their ranks say so.
std::vector<Node> members_of(const EpochView& view, const EpochLimits& limits) {
  const Numbers numbers{std::max(1, limits.least), limits.most};
  for (int ranks = std::min(limits.lanes, ranks_on(view.nodes)); ranks > 0; --ranks) {
    if (!lanes_fit(limits.lanes, ranks)) continue;
    if (auto whole = whole_nodes(view.nodes, ranks, numbers)) return *whole;
    if (auto shortened = shortened_nodes(view.nodes, ranks, numbers)) return *shortened;
  }
  std::vector<Node> all = view.nodes;
  if (std::ssize(all) > limits.most) all.resize(static_cast<size_t>(limits.most));
  return all;
}

// Whether other nodes may come in a moment.
bool is_early(const EpochView& view, const EpochLimits& limits) {
  return std::ssize(view.nodes) < limits.most && view.quiet < limits.last_call;
}

std::optional<Epoch> first_epoch(const EpochView& view, const EpochLimits& limits) {
  if (std::ssize(view.nodes) < limits.least || is_early(view, limits)) return std::nullopt;
  const std::vector<Node> members = members_of(view, limits);
  return Epoch{
      .number = 1, .run = members.front().id, .nodes = members, .why = cat("the run begins with ", names(members))};
}

// Whether all nodes that are there have come after the epoch was over: theirs is another run with the same id.
bool is_of_the_past(const EpochView& view) {
  return std::ranges::all_of(view.nodes, [&](const Node& node) { return node.before >= view.epoch->number; });
}

std::optional<Epoch> another_run(const EpochView& view, const EpochLimits& limits) {
  std::optional<Epoch> first = first_epoch(view, limits);
  if (first) first->number = view.epoch->number + 1;
  return first;
}

}  // namespace

std::string Node::encode() const { return to_json(*this).dump(); }
std::optional<Node> Node::decode(const std::string& text) { return decoded<Node>(text, node_of); }

const Node* Epoch::find(const std::string& id) const {
  const auto found = std::ranges::find_if(nodes, [&](const Node& node) { return node.id == id; });
  return found == nodes.end() ? nullptr : &*found;
}

std::string Epoch::encode() const {
  json members = json::array();
  for (const Node& node : nodes) members.push_back(to_json(node));
  return json{{"number", number},       {"run", run}, {"restarts", restarts}, {"nodes", members},  {"ended", ended},
              {"exit_code", exit_code}, {"why", why}, {"furthest", furthest}, {"stalled", stalled}}
      .dump();
}

std::optional<Epoch> Epoch::decode(const std::string& text) {
  return decoded<Epoch>(text, [](const json& value) {
    Epoch epoch{.number = value.at("number"),
                .run = value.value("run", ""),
                .restarts = value.at("restarts"),
                .nodes = {},
                .ended = value.at("ended"),
                .exit_code = value.at("exit_code"),
                .why = value.at("why"),
                .furthest = value.value("furthest", int64_t{-1}),
                .stalled = value.value("stalled", 0)};
    for (const json& node : value.at("nodes")) epoch.nodes.push_back(node_of(node));
    return epoch;
  });
}

std::string NodeOutcome::encode() const {
  return json{{"node", node},       {"exit_code", exit_code}, {"stopped", stopped}, {"asked", asked},
              {"repeats", repeats}, {"text", text},           {"step", step}}
      .dump();
}

std::optional<NodeOutcome> NodeOutcome::decode(const std::string& text) {
  return decoded<NodeOutcome>(text, [](const json& value) {
    return NodeOutcome{.node = value.at("node"),
                       .exit_code = value.at("exit_code"),
                       .stopped = value.at("stopped"),
                       .asked = value.at("asked"),
                       .repeats = value.at("repeats"),
                       .text = value.at("text"),
                       .step = value.value("step", int64_t{-1})};
  });
}

std::vector<Node> lost_nodes(const EpochView& view) {
  std::vector<Node> lost;
  if (!view.epoch) return lost;
  for (const Node& node : view.epoch->nodes) {
    const NodeOutcome* const outcome = outcome_of(view, node.id);
    const bool is_done = outcome != nullptr && outcome->exit_code == 0;
    if (!is_done && !is_there(view, node.id)) lost.push_back(node);
  }
  return lost;
}

std::string broken(const EpochView& view) {
  if (!view.epoch || view.epoch->ended) return "";
  const std::vector<Node> lost = lost_nodes(view);
  if (!lost.empty()) return cat(names(lost), lost.size() == 1 ? " is gone" : " are gone");
  for (const NodeOutcome& each : view.outcomes) {
    if (each.asked) return "the run was asked to stop";
  }
  const NodeOutcome* failed = failure(view);
  const auto stopped = std::ranges::find_if(view.outcomes, [](const NodeOutcome& each) { return each.exit_code != 0; });
  if (failed == nullptr && stopped == view.outcomes.end()) return "";
  const bool by_itself = failed != nullptr;
  if (!by_itself) failed = &*stopped;  // cut off from etcd for a while
  const Node* const node = view.epoch->find(failed->node);
  return cat("ranks have ", by_itself ? "failed" : "been stopped", " on ", node == nullptr ? "a node" : node->host,
             ": ", failed->text);
}

bool broken_for_a_peer(const EpochView& view) {
  const bool asked = std::ranges::any_of(view.outcomes, [](const NodeOutcome& each) { return each.asked; });
  const NodeOutcome* const failed = failure(view);
  return !asked && lost_nodes(view).empty() && failed != nullptr && failed->exit_code == CommError::kExitCode;
}

std::optional<Epoch> next_epoch(const EpochView& view, const EpochLimits& limits) {
  if (!view.epoch) return first_epoch(view, limits);
  const Epoch& epoch = *view.epoch;
  if (is_of_the_past(view)) return another_run(view, limits);
  if (epoch.ended) return std::nullopt;
  const std::string why = broken(view);
  // An epoch is over when the ranks of all its nodes have ended that are there.
  for (const Node& node : epoch.nodes) {
    if (outcome_of(view, node.id) == nullptr && is_there(view, node.id)) return std::nullopt;
  }
  const NodeOutcome* const failed = failure(view);
  for (const NodeOutcome& each : view.outcomes) {
    const int code = each.exit_code != 0 || failed == nullptr ? each.exit_code : failed->exit_code;
    if (each.asked) return ended(epoch, code, why);
  }
  if (why.empty()) return ended(epoch, 0, "all ranks have ended");
  const int code = failed != nullptr && lost_nodes(view).empty() ? failed->exit_code : CommError::kExitCode;
  if (failed != nullptr && failed->repeats) return ended(epoch, failed->exit_code, why);
  if (epoch.restarts >= limits.max_restarts) {
    const std::string none = limits.max_restarts == 0 ? "" : cat(", after ", epoch.restarts, " restarts");
    return ended(epoch, code, why + none);
  }
  const auto [furthest, stalled] = progress_of(view);
  if (stalled == kMostWithoutProgress) {
    return ended(epoch, code, cat(why, ", and ", stalled, " epochs in a row got no further than step ", furthest));
  }
  if (std::ssize(view.nodes) < limits.least) return std::nullopt;  // they may come back
  // After an outage of etcd all come back, one after the other.
  if (std::ssize(lost_nodes(view)) == std::ssize(epoch.nodes) && is_early(view, limits)) return std::nullopt;
  const std::vector<Node> members = members_of(view, limits);
  return Epoch{.number = epoch.number + 1,
               .run = epoch.run,
               .restarts = epoch.restarts + 1,
               .nodes = members,
               .why = cat(why, "; restart ", epoch.restarts + 1, " of ", limits.max_restarts, " with ", names(members)),
               .furthest = furthest,
               .stalled = stalled};
}

}  // namespace lockstep::launch
