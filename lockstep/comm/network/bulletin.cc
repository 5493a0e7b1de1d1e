#include "lockstep/comm/network/bulletin.h"

#include <cstring>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/base/text.h"

namespace lockstep::comm {
namespace {

constexpr const char* kGivenUp = "given-up";

std::string post_key(const WatchGroup& group, int rank) { return cat("wait/", group.name, '/', rank); }
std::string beat_key(int rank) { return cat("beat/", rank); }

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

Bulletin::Bulletin(c10::intrusive_ptr<c10d::Store> store, int rank) : store_(std::move(store)), rank_(rank) {}

Bulletin::~Bulletin() = default;

void Bulletin::announce() { beat("0"); }

void Bulletin::announce(const WatchGroup& group) { post(group, {}); }

void Bulletin::beat(const std::string& text) { store_->set(beat_key(rank_), bytes_of(text)); }

std::vector<std::string> Bulletin::beats(const std::vector<int>& ranks) {
  std::vector<std::string> keys, texts;
  for (const int rank : ranks) keys.push_back(beat_key(rank));
  if (keys.empty()) return texts;
  for (const auto& bytes : store_->multiGet(keys)) texts.push_back(text_of(bytes));
  return texts;
}

void Bulletin::post(const WatchGroup& group, const Post& post) {
  store_->set(post_key(group, rank_), bytes_of({reinterpret_cast<const char*>(&post), sizeof post}));
}

std::vector<Post> Bulletin::posts(const WatchGroup& group) {
  std::vector<std::string> keys;
  for (const int rank : group.ranks) keys.push_back(post_key(group, rank));
  std::vector<Post> posts;
  for (const auto& bytes : store_->multiGet(keys)) {
    Post post;
    if (bytes.size() == sizeof post) std::memcpy(&post, bytes.data(), sizeof post);
    posts.push_back(post);
  }
  return posts;
}

void Bulletin::give_up(const std::string& reason) { store_->compareSet(kGivenUp, {}, bytes_of(reason)); }

std::optional<std::string> Bulletin::given_up() {
  if (!store_->check({kGivenUp})) return std::nullopt;
  return text_of(store_->get(kGivenUp));
}

}  // namespace lockstep::comm
