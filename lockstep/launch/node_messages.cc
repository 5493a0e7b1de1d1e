#include "lockstep/launch/node_messages.h"

#include <sstream>

#include "lockstep/base/board.h"
#include "lockstep/base/split_list.h"
#include "lockstep/base/text.h"

namespace lockstep::launch {
namespace {

constexpr const char* kMagic = "lockstep-node";
constexpr int kVersion = 1;

template <typename Item>
std::string joined(const std::vector<Item>& items) {
  std::string out;
  for (const auto& item : items) out += cat(out.empty() ? "" : ",", item);
  return out;
}

std::string rest_of(std::istringstream& in) {
  std::string rest;
  std::getline(in >> std::ws, rest);
  return rest;
}

}  // namespace

std::string NodeHello::encode() const {
  return cat(kMagic, ' ', kVersion, ' ', nodes, ' ', node, ' ', address.empty() ? "-" : address, ' ', joined(ports),
             ' ', job, '\n');
}

std::optional<NodeHello> NodeHello::decode(const std::string& line) {
  std::istringstream in(line);
  std::string magic, ports;
  int version = 0;
  NodeHello hello;
  if (!(in >> magic >> version >> hello.nodes >> hello.node >> hello.address >> ports)) return std::nullopt;
  if (magic != kMagic || version != kVersion || hello.nodes < 1 || hello.node < NodeHandshake::kAsTheyCome) {
    return std::nullopt;
  }
  if (hello.address == "-") hello.address.clear();
  for (const auto& port : split_list(ports)) {
    if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos) {
      return std::nullopt;
    }
    hello.ports.push_back(std::stoi(port));
  }
  if (hello.ports.empty() || std::ssize(hello.ports) > kMaxLocalRanks) return std::nullopt;
  hello.job = rest_of(in);
  return hello;
}

std::string NodeAnswer::encode() const {
  if (error != 0) return cat("error ", error, ' ', text, '\n');
  return cat("ok ", table.node, ' ', table.first_rank, ' ', table.world_size, ' ', joined(table.endpoints), '\n');
}

std::optional<NodeAnswer> NodeAnswer::decode(const std::string& line) {
  std::istringstream in(line);
  NodeAnswer answer;
  std::string kind, endpoints;
  in >> kind;
  if (kind == "error" && in >> answer.error && answer.error != 0) {
    answer.text = rest_of(in);
    return answer;
  }
  NodeTable& table = answer.table;
  if (kind != "ok" || !(in >> table.node >> table.first_rank >> table.world_size >> endpoints)) return std::nullopt;
  table.endpoints = split_list(endpoints);
  const bool sound = table.node >= 0 && table.first_rank >= 0 && table.first_rank < table.world_size &&
                     std::ssize(table.endpoints) == table.world_size;
  return sound ? std::optional(answer) : std::nullopt;
}

}  // namespace lockstep::launch
