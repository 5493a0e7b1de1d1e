#include "lockstep/train/inspection/ledger_check.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/folder_entries.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// What the lines of a start say of the run.
struct Shape {
  int64_t samples = 0, lanes = 0, batch_size = 0;
  bool drop_last = false;
  bool operator==(const Shape&) const = default;

  int64_t global_batch() const { return lanes * batch_size; }
  // The places of an epoch that are used, and its steps.
  int64_t used() const { return drop_last ? samples / global_batch() * global_batch() : samples; }
  int64_t steps() const { return (used() + global_batch() - 1) / global_batch(); }
};

struct Part {  // of a step, a lane's
  int64_t first = 0, count = 0;
  std::string hash;
  auto operator<=>(const Part&) const = default;
};

// The ranks of an attempt, and those of which there are lines here: other nodes may have theirs on disks of their own.
struct Start {
  int64_t ranks = 0, after = 0;
  std::set<int64_t> here;
  std::map<std::pair<int64_t, int64_t>, int64_t> places;  // of these, by the size of their node and their place on it

  bool is_whole() const { return static_cast<int64_t>(here.size()) >= ranks; }
  // Whether each node has lines of all of its ranks, or none.
  bool has_whole_nodes() const {
    return std::all_of(places.begin(), places.end(), [&](const auto& each) {
      const auto& [size, place] = each.first;
      const auto next = places.find({size, (place + 1) % size});
      return next != places.end() && next->second == each.second;
    });
  }
};

// By attempt, then by lane.
using StepParts = std::map<int64_t, std::map<int64_t, Part>>;

class Check {
 public:
  explicit Check(const std::string& folder) {
    std::error_code error;
    std::vector<std::string> paths;
    for (const fs::path& path : entries_of(folder, error)) paths.push_back(path.string());
    if (error) throw IoError("can't be read: ", error.message());
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) {
      if (path.ends_with(".jsonl")) read(path);
    }
    if (!shape_) throw DataError("no line says what run it is of");
  }

  std::string run() {
    for (const auto& [step, parts] : steps_) check_repeated(step, parts);
    drop_what_is_to_come();
    int64_t elsewhere = 0;  // steps of which other folders have lanes
    int64_t next = steps_.empty() ? 0 : first();
    int64_t before = 0;  // the attempt of the step before
    for (const auto& [step, parts] : steps_) {
      const auto& [attempt, lanes] = *parts.rbegin();
      if (step != next && !ran_elsewhere(before, attempt)) throw DataError("step ", next, " is missing");
      const Start& start = start_of(attempt);
      const bool under_way = step == last() && attempt == newest();
      if (!under_way && !start.has_whole_nodes()) {
        throw DataError("attempt ", attempt, ": of ", start.ranks, " ranks ", start.here.size(),
                        " have lines here, and others of the same node none: a file is missing");
      }
      check_places(step, lanes, start.is_whole(), under_way);
      elsewhere += step - next + (start.is_whole() ? 0 : 1);
      next = step + 1;
      before = attempt;
    }
    const int64_t epochs = steps_.empty() ? 0 : (last() - 1) / shape_->steps() - (first() - 1) / shape_->steps() + 1;
    return cat(steps_.size(), steps_.size() == 1 ? " step" : " steps", " of ", starts_.size(),
               starts_.size() == 1 ? " attempt" : " attempts", ", in ", epochs, epochs == 1 ? " epoch" : " epochs",
               " of ", shape_->used(), " samples, each used ",
               elsewhere == 0 ? "once" : cat("at most once here; of ", elsewhere, " steps other nodes have lanes"));
  }

 private:
  int64_t first() const { return steps_.begin()->first; }
  int64_t last() const { return steps_.rbegin()->first; }
  int64_t newest() const { return starts_.rbegin()->first; }

  // The newest attempt may have begun before steps of an older one, which it is to compute again.
  void drop_what_is_to_come() {
    int64_t reached = starts_.at(newest()).after;
    for (const auto& [step, parts] : steps_) {
      if (parts.contains(newest())) reached = std::max(reached, step);
    }
    steps_.erase(steps_.upper_bound(reached), steps_.end());
  }

  // Whether only other nodes have lines of an attempt between two.
  bool ran_elsewhere(int64_t from, int64_t to) const {
    for (int64_t attempt = from + 1; attempt < to; ++attempt) {
      if (!starts_.contains(attempt)) return true;
    }
    return false;
  }

  const Start& start_of(int64_t attempt) const {
    const auto start = starts_.find(attempt);
    if (start == starts_.end()) throw DataError("no line says how attempt ", attempt, " has begun");
    return start->second;
  }

  // A killed writer leaves half a line, as its last or before the line of its next start.
  void read(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw IoError("can't be read: ", errno_text(errno));
    const std::string name = fs::path(path).filename().string();
    int64_t number = 0, half = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      const json record = json::parse(line, nullptr, /*allow_exceptions=*/false);
      const bool begins = record.is_object() && record.contains("ranks");
      if (half > 0 && !begins) throw DataError(name, ", line ", half, " is no line of a ledger");
      half = 0;
      try {
        if (begins) {
          begin(record);
        } else {
          add(record);
        }
      } catch (const json::exception&) {
        half = number;
      }
    }
  }

  void begin(const json& record) {
    const int64_t attempt = record.at("attempt"), rank = record.at("rank"), ranks = record.at("ranks");
    const int64_t after = record.at("after");
    const std::pair<int64_t, int64_t> place{record.at("local_size"), record.at("local_rank")};
    if (place.first < 1) throw DataError("a node of ", place.first, " ranks");
    const Shape shape{record.at("samples"), record.at("lanes"), record.at("batch_size"), record.at("drop_last")};
    if (shape.samples < 1 || shape.lanes < 1 || shape.batch_size < 1 || shape.used() < 1) {
      throw DataError("a run of ", shape.samples, " samples in ", shape.lanes, " lanes of ", shape.batch_size,
                      " has no steps");
    }
    if (shape_ && *shape_ != shape) throw DataError("its lines are of runs with other data, lanes or batches");
    shape_ = shape;
    Start& start = starts_[attempt];
    start.ranks = ranks;
    start.after = after;
    if (start.here.insert(rank).second) ++start.places[place];
  }

  void add(const json& record) {
    const Part part{record.at("first"), record.at("count"), record.at("xxh3")};
    const int64_t step = record.at("step"), attempt = record.at("attempt"), lane = record.at("lane");
    const auto [at, is_new] = steps_[step][attempt].emplace(lane, part);
    if (!is_new && at->second != part) {
      throw DataError("step ", step, ", lane ", lane, ": attempt ", attempt, " has noted it twice, with other samples");
    }
  }

  static void check_repeated(int64_t step, const StepParts& parts) {
    const auto& counts = *parts.rbegin();
    for (const auto& [attempt, lanes] : parts) {
      for (const auto& [lane, part] : lanes) {
        const auto same = counts.second.find(lane);
        if (same == counts.second.end() || same->second == part) continue;
        throw DataError("step ", step, ", lane ", lane, ": attempt ", attempt, " had other samples than attempt ",
                        counts.first);
      }
    }
  }

  // The step's lanes together have the places between the step before and the step after.
  void check_places(int64_t step, const std::map<int64_t, Part>& lanes, bool is_whole, bool under_way) const {
    const int64_t begin = (step - 1) % shape_->steps() * shape_->global_batch();
    const int64_t end = std::min(begin + shape_->global_batch(), shape_->used());
    std::vector<Part> parts;
    for (const auto& [lane, part] : lanes) parts.push_back(part);
    std::sort(parts.begin(), parts.end());
    int64_t at = begin;
    for (const Part& part : parts) {
      if (part.count == 0) continue;
      if (part.first < at) throw DataError("step ", step, ": sample ", part.first, " of the epoch is used twice");
      if (part.first > at && is_whole) break;
      at = part.first + part.count;
    }
    if (at > end) throw DataError("step ", step, ": sample ", at - 1, " of the epoch is another step's");
    if (at < end && is_whole && !under_way)
      throw DataError("step ", step, ": sample ", at, " of the epoch is not used");
  }

  std::optional<Shape> shape_;
  std::map<int64_t, Start> starts_;  // by attempt
  std::map<int64_t, StepParts> steps_;
};

}  // namespace

std::string check_ledger(const std::string& folder) { return Check(folder).run(); }

}  // namespace lockstep::train
