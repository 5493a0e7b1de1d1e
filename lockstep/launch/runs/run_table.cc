#include "lockstep/launch/runs/run_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "lockstep/base/text.h"

namespace lockstep::launch {
namespace {

constexpr size_t kColumns = 80, kLeast = 12;
constexpr const char* kUnknown = "-";

using Row = std::vector<std::string>;

// Four digits that count.
std::string short_number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), std::abs(value) >= 1000 ? "%.0f" : "%.4g", value);
  return text.data();
}

std::string number_or(int64_t value) { return value > 0 ? std::to_string(value) : kUnknown; }

std::string state_of(const RunFacts& run, int64_t now) {
  if (run.state != RunState::kUnderWay) return std::string(word_of(run.state));
  return run.since > 0 ? short_time(now - run.since) : kUnknown;
}

std::string process_of(const train::LockOwner& owner, const std::string& host) {
  if (!owner.held || owner.pid == 0) return kUnknown;
  return owner.host == host ? std::to_string(owner.pid) : cat(owner.pid, '@', owner.host);
}

Row row_of(const RunFacts& run, const std::string& host, int64_t now) {
  return {run.folder,
          run.recipe.empty() ? kUnknown : run.recipe,
          process_of(run.owner, host),
          number_or(run.ranks),
          run.steps > 0 ? cat(run.last.step, '/', run.steps) : cat(run.last.step),
          run.last.loss ? short_number(*run.last.loss) : kUnknown,
          run.last.samples_per_second ? short_number(*run.last.samples_per_second) : kUnknown,
          state_of(run, now)};
}

// Of a name that is too long its end, which tells it from others.
std::string fitting(const std::string& text, size_t width) {
  if (text.size() <= width) return text + std::string(width - text.size(), ' ');
  size_t begin = text.size() - width + 1;
  while (begin < text.size() && (text[begin] & 0xc0) == 0x80) ++begin;  // not in the middle of a letter
  return "…" + text.substr(begin);
}

}  // namespace

std::string short_time(int64_t seconds) {
  seconds = std::max<int64_t>(0, seconds);
  const int64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
  const auto two = [](int64_t number) { return cat(number < 10 ? "0" : "", number); };
  if (days > 0) return cat(days, 'd', two(hours % 24), 'h');
  if (hours > 0) return cat(hours, 'h', two(minutes % 60), 'm');
  return minutes > 0 ? cat(minutes, 'm') : cat(seconds, 's');
}

std::string run_table(const std::vector<RunFacts>& runs, bool all, const std::string& host, int64_t now,
                      const std::string& nothing) {
  if (runs.empty()) return nothing + '\n';
  std::vector<Row> rows = {{"RUN", "RECIPE", "PID", "RANKS", "STEP", "LOSS", "SAMPLES/S", all ? "STATE" : "SINCE"}};
  for (const RunFacts& run : runs) rows.push_back(row_of(run, host, now));
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto total = [&widths](size_t between) {
    size_t sum = between * (widths.size() - 1);
    for (const size_t width : widths) sum += width;
    return sum;
  };
  const size_t between = total(2) <= kColumns ? 2 : 1;
  // First the run's name gives way, then the process's host and the recipe's name.
  for (const size_t column : {size_t{0}, size_t{2}, size_t{1}}) {
    const size_t over = total(between) > kColumns ? total(between) - kColumns : 0;
    const size_t least = std::min(widths[column], column == 0 ? kLeast : kLeast - 4);
    widths[column] -= std::min(over, widths[column] - least);
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fitting(row[i], widths[i]) + std::string(between, ' ');
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string runs_json(const std::vector<RunFacts>& runs, int64_t now) {
  using Json = nlohmann::ordered_json;
  const auto known = [](int64_t number) { return number > 0 ? Json(number) : Json(); };
  const auto real = [](const std::optional<double>& number) { return number ? Json(*number) : Json(); };
  const auto text = [](const std::string& held) { return held.empty() ? Json() : Json(held); };
  Json all = Json::array();
  for (const RunFacts& run : runs) {
    const bool held = run.state == RunState::kUnderWay;
    all.push_back({{"run", run.folder},
                   {"recipe", text(run.recipe)},
                   {"state", word_of(run.state)},
                   {"pid", known(run.owner.pid)},
                   {"host", text(run.owner.host)},
                   {"ranks", known(run.ranks)},
                   {"epoch", known(run.last.epoch)},
                   {"epochs", known(run.epochs)},
                   {"step", run.last.step},
                   {"steps", known(run.steps)},
                   {"loss", real(run.last.loss)},
                   {"samples_per_second", real(run.last.samples_per_second)},
                   {"since", known(run.since)},
                   {"seconds", held && run.since > 0 ? Json(now - run.since) : Json()}});
  }
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace lockstep::launch
