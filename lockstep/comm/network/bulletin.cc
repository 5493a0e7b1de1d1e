#include "lockstep/comm/network/bulletin.h"

#include <algorithm>
#include <cstring>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/base/text.h"

namespace lockstep::comm {
namespace {

constexpr const char *kGivenUp = "given-up", *kLearners = "learners";
constexpr char kDesync = 'd', kNoDesync = '-';  // the first letter of the reason

std::string post_key(const std::string& group, int rank) { return cat("wait/", group, '/', rank); }
std::string heartbeat_key(int rank) { return cat("beat/", rank); }

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

Bulletin::Bulletin(c10::intrusive_ptr<c10d::Store> store, int rank) : store_(std::move(store)), rank_(rank) {}

Bulletin::~Bulletin() = default;

void Bulletin::announce() { heartbeat("0"); }

void Bulletin::announce(const WatchGroup& group) { post(group.name, {}); }

void Bulletin::heartbeat(const std::string& text) { store_->set(heartbeat_key(rank_), bytes_of(text)); }

std::vector<std::string> Bulletin::heartbeats(const std::vector<int>& ranks) {
  std::vector<std::string> keys, texts;
  for (const int rank : ranks) keys.push_back(heartbeat_key(rank));
  if (keys.empty()) return texts;
  for (const auto& bytes : store_->multiGet(keys)) texts.push_back(text_of(bytes));
  return texts;
}

uint64_t History::newest() const {
  uint64_t newest = 0;
  for (const Post& post : calls) newest = std::max(newest, post.number);
  return newest;
}

const Post* History::find(uint64_t number) const {
  const Post& post = calls[number % kCalls];
  return number != 0 && post.number == number ? &post : nullptr;
}

void Bulletin::post(const std::string& group, const History& history) {
  store_->set(post_key(group, rank_), bytes_of({reinterpret_cast<const char*>(&history), sizeof history}));
}

std::vector<History> Bulletin::posts(const WatchGroup& group) {
  std::vector<std::string> keys;
  for (const int rank : group.ranks) keys.push_back(post_key(group.name, rank));
  std::vector<History> posts;
  for (const auto& bytes : store_->multiGet(keys)) {
    History history;
    if (bytes.size() == sizeof history) std::memcpy(&history, bytes.data(), sizeof history);
    posts.push_back(history);
  }
  return posts;
}

void Bulletin::give_up(const GivenUp& why) {
  store_->compareSet(kGivenUp, {}, bytes_of((why.desync ? kDesync : kNoDesync) + why.reason));
}

std::optional<GivenUp> Bulletin::given_up() {
  if (!store_->check({kGivenUp})) return std::nullopt;
  const std::string text = text_of(store_->get(kGivenUp));
  return GivenUp{.reason = text.empty() ? "" : text.substr(1), .desync = !text.empty() && text[0] == kDesync};
}

void Bulletin::learn_of_difference() { store_->add(kLearners, 1); }

int64_t Bulletin::learners() { return store_->add(kLearners, 0); }

}  // namespace lockstep::comm
