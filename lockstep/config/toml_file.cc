#include "lockstep/config/toml_file.h"

// Compiled here, for its library would need the C++ runtime of the system's (apps/front/CMakeLists.txt).
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>

#include "lockstep/config/inputs.h"
#include "lockstep/config/rules.h"

namespace lockstep::config {
namespace {

constexpr size_t kMostBytes = 1 << 20;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (const int error = errno; !file) throw ConfigError("--config ", path, ": ", errno_text(error), near_entry(path));
  std::string text(kMostBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) throw ConfigError("--config ", path, ": can't be read; is it a file?");
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() == kMostBytes) throw ConfigError("--config ", path, ": over 1 MiB; is it a file of options?");
  return text;
}

toml::table parse(const std::string& path) {
  try {
    return toml::parse(read_file(path), path);
  } catch (const toml::parse_error& error) {
    throw ConfigError("--config ", path, ", line ", error.source().begin.line, ": ", error.description());
  }
}

// A plain value as the command line spells it.
std::string spell(const std::string& where, const toml::node& node) {
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* value = node.as_integer()) return std::to_string(value->get());
  if (const auto* value = node.as_floating_point()) return write_number(value->get());
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  throw ConfigError(where, ": expected a number, a text or true/false, found ",
                    node.is_table()   ? "a table; options stand at the top of the file"
                    : node.is_array() ? "an array"
                                      : "something else");
}

// The values of an array with commas between them.
std::string spell_list(const std::string& where, const toml::array& values) {
  std::string text;
  for (const toml::node& each : values) text += cat(text.empty() ? "" : ",", spell(where, each));
  return text;
}

// An array of tables, each with its key "match", as rules in text.
std::string spell_rules(const std::string& where, const toml::array& tables) {
  std::vector<Rule> rules;
  for (const toml::node& each : tables) {
    Rule& rule = rules.emplace_back();
    for (const auto& [key, value] : *each.as_table()) {
      const std::string name(key.str()), text = spell(cat(where, ": ", name), value);
      if (name == "match") {
        rule.match = text;
      } else {
        rule.settings.emplace_back(name, text);
      }
    }
    if (rule.match.empty()) throw ConfigError(where, ": a table without the key match");
  }
  return write_rules(rules);
}

// A node as the value of the option that the shape is of.
std::string spell_as(const OptionShape& shape, const std::string& where, const toml::node& node) {
  if (shape.is_rules && node.is_array_of_tables()) return spell_rules(where, *node.as_array());
  if (shape.is_list && node.is_array()) return spell_list(where, *node.as_array());
  // `amp = true` is a bare --amp.
  const auto* const on = shape.form == OptionForm::kOptionalValue ? node.as_boolean() : nullptr;
  if (on != nullptr) return on->get() ? "" : shape.when_off;
  return spell(where, node);
}

bool is_plain(const std::string& text) {
  return text == "true" || text == "false" || text.find_first_not_of("0123456789+-.e") == std::string::npos;
}

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::value<std::string>(text);
  return out.str();
}

std::string to_tables(const Option& row, const std::string& text) {
  std::string out;
  for (const Rule& rule : read_rules(row.name, text)) {
    out += cat("\n[[", row.name, "]]\nmatch = ", quoted(rule.match), '\n');
    for (const auto& [name, value] : rule.settings)
      out += cat(name, " = ", is_plain(value) ? value : quoted(value), '\n');
  }
  return out;
}

}  // namespace

std::vector<GivenOption> read_toml(const std::string& path, std::span<const OptionShape> shapes) {
  std::vector<std::string> keys;
  for (const auto& shape : shapes) keys.push_back(shape.name);
  std::vector<GivenOption> given;
  for (const auto& [key, node] : parse(path)) {
    const std::string name(key.str());
    const std::string where = cat("--config ", path, ", line ", node.source().begin.line, ": ", name);
    if (std::find(keys.begin(), keys.end(), name) == keys.end()) {
      throw ConfigError(where, ": unknown key", did_you_mean(name, keys));
    }
    const auto shape =
        std::find_if(shapes.begin(), shapes.end(), [&name](const auto& each) { return each.name == name; });
    given.push_back({.name = name, .value = spell_as(*shape, where, node)});
  }
  return given;
}

std::vector<GivenOption> read_any_toml(const std::string& path) {
  std::vector<GivenOption> given;
  for (const auto& [key, node] : parse(path)) {
    std::ostringstream text;
    if (node.is_table() || node.is_array()) {
      node.visit([&text](const auto& value) { text << value; });
    } else {
      text << spell(cat(path, ": ", key.str()), node);
    }
    given.push_back({.name = std::string(key.str()), .value = text.str()});
  }
  return given;
}

std::string to_toml(std::initializer_list<const OptionSet*> sets) {
  std::string out, tables;  // which come after all plain values, or they would swallow these
  for (const OptionSet* options : sets) {
    for (const Option& row : options->rows()) {
      const auto value = row.in_file ? row.get() : std::nullopt;
      if (value && row.is_rules) {
        tables += to_tables(row, *value);
        continue;
      }
      if (value) out += cat(row.name, " = ", row.is_text || !is_plain(*value) ? quoted(*value) : *value, "\n");
    }
  }
  return out + tables;
}

}  // namespace lockstep::config
