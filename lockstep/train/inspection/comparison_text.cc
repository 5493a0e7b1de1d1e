#include <algorithm>

#include "lockstep/base/shown.h"
#include "lockstep/checkpoint/compare_text.h"
#include "lockstep/train/inspection/run_comparison.h"

namespace lockstep::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostBytes = 60;  // of a value

std::string value_text(const Json& value) {
  if (value.is_null()) return "–";
  const std::string text =
      shown(value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace));
  return text.size() <= kMostBytes ? text : text.substr(0, kMostBytes) + "…";
}

std::string two(const std::string& name, const std::string& a, const std::string& b) {
  return cat("  ", shown(name), "  ", a.empty() ? "–" : a, " | ", b.empty() ? "–" : b);
}

std::string options_text(const std::vector<OptionDifference>& options) {
  if (options.empty()) return "options: equal\n";
  std::string text = "options:\n";
  for (const auto& [name, a, b, bears] : options) {
    text += cat(two(name, shown(a), shown(b)), bears ? "" : "  (does not bear on the result)", '\n');
  }
  return text;
}

std::string metrics_text(const MetricComparison& metrics) {
  if (metrics.records + metrics.only_a.count + metrics.only_b.count == 0) return "";
  std::string text = "metrics: ";
  if (metrics.differing == 0) {
    text += cat("equal in ", metrics.records, metrics.records == 1 ? " record\n" : " records\n");
  } else {
    text += cat("part at step ", metrics.step, " (", shown(metrics.kind), "); ", metrics.differing, " of ",
                metrics.records, " records differ\n");
    for (const auto& [name, a, b] : metrics.fields) text += two(name, value_text(a), value_text(b)) + '\n';
  }
  const auto only = [&](const OnlyOnes& ones, char run) {
    if (ones.count == 0) return;
    const std::string steps =
        ones.first == ones.last ? cat("step ", ones.first) : cat("steps ", ones.first, " to ", ones.last);
    text += cat("  only ", run, " has ", ones.count, ones.count == 1 ? " record" : " records", ", of ", steps, '\n');
  };
  only(metrics.only_a, 'A');
  only(metrics.only_b, 'B');
  return text;
}

std::string results_text(const std::vector<TwoValues>& results) {
  std::string text = results.empty() ? "" : "results:\n";
  for (const auto& [name, a, b] : results) text += two(name, value_text(a), value_text(b)) + '\n';
  return text;
}

std::string checkpoints_text(const ComparedCheckpoints& found) {
  if (found.equal_steps.empty()) return "";
  const auto text = [](int64_t step) { return std::to_string(step); };
  return cat("checkpoints: equal at step", found.equal_steps.size() == 1 ? " " : "s ",
             first_few(found.equal_steps, 10, text), '\n');
}

Json pairs(const std::vector<TwoValues>& values) {
  Json json = Json::array();
  for (const auto& [name, a, b] : values) json.push_back({{"name", name}, {"a", a}, {"b", b}});
  return json;
}

Json options_json(const std::vector<OptionDifference>& options) {
  Json json = Json::array();
  for (const auto& [name, a, b, bears] : options) {
    json.push_back({{"name", name}, {"a", a}, {"b", b}, {"bears_on_result", bears}});
  }
  return json;
}

Json metrics_json(const MetricComparison& metrics) {
  Json json = {{"records", metrics.records},
               {"differing", metrics.differing},
               {"only_a", metrics.only_a.count},
               {"only_b", metrics.only_b.count}};
  if (metrics.differing > 0) {
    json["first"] = {{"step", metrics.step}, {"kind", metrics.kind}, {"fields", pairs(metrics.fields)}};
  }
  return json;
}

Json checkpoints_json(const ComparedCheckpoints& found, size_t most) {
  Json json = {{"a", found.a}, {"b", found.b}};
  if (!found.equal_steps.empty()) json["equal_steps"] = found.equal_steps;
  json.update(checkpoint::json_of(found.found, most));
  return json;
}

}  // namespace

std::string text_of(const ComparedCheckpoints& found, size_t most) {
  const auto& [tensors, values, differences] = found.found;
  if (differences.empty() && tensors + values == 0) return "";  // by their bytes
  return cat("A: ", shown(found.a), "\nB: ", shown(found.b), '\n', tensors,
             tensors == 1 ? " tensor and " : " tensors and ", values, values == 1 ? " value" : " values", " in both, ",
             differences.empty() ? "all equal"
                                 : cat(differences.size(), differences.size() == 1 ? " difference" : " differences"),
             '\n', checkpoint::text_of(found.found, most));
}

std::string text_of(const RunComparison& found, size_t most) {
  std::string text = options_text(found.options) + metrics_text(found.metrics) + results_text(found.results);
  for (const std::string& line : found.only_one_has) text += line + '\n';
  if (!found.checkpoints) return text;
  return text + checkpoints_text(*found.checkpoints) + text_of(*found.checkpoints, most);
}

Json json_of(const ComparedCheckpoints& found, size_t most) {
  return {{"equal", found.found.differences.empty()}, {"checkpoints", checkpoints_json(found, most)}};
}

Json json_of(const RunComparison& found, size_t most) {
  return {{"equal", found.equal()},
          {"options", options_json(found.options)},
          {"metrics", metrics_json(found.metrics)},
          {"results", pairs(found.results)},
          {"only_one_has", found.only_one_has},
          {"checkpoints", found.checkpoints ? checkpoints_json(*found.checkpoints, most) : Json()}};
}

}  // namespace lockstep::train
