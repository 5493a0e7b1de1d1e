#include "lockstep/apps/commands/launch_values.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/config/values.h"
#include "lockstep/launch/rank_layout.h"

namespace lockstep::apps {
namespace {

std::vector<std::string> split(const std::string& text, char between) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(between, at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

bool is_digits(const std::string& text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
}

[[noreturn]] void refuse_streams(const std::string& flag, const std::string& text) {
  throw ConfigError(
      "--", flag, ' ', text,
      ": expected 0 (none), 1 (standard output), 2 (standard error) or 3 (both), for all or by local rank, as 0:3,1:1");
}

int read_stream(const std::string& flag, const std::string& text, const std::string& whole) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') refuse_streams(flag, whole);
  return text[0] - '0';
}

}  // namespace

std::map<int, int> read_streams(const std::string& flag, const std::string& text, int nproc) {
  std::map<int, int> out;
  if (text.find(':') == std::string::npos) return {{launch::LogLayout::kOthers, read_stream(flag, text, text)}};
  for (const auto& item : split(text, ',')) {
    const size_t colon = item.find(':');
    const std::string rank = item.substr(0, colon);
    if (colon == std::string::npos || !is_digits(rank)) refuse_streams(flag, text);
    if (std::stoi(rank) >= nproc) {
      throw ConfigError("--", flag, ' ', text, ": there is no local rank ", rank, " of ", nproc, "; they go from 0 to ",
                        nproc - 1);
    }
    out[std::stoi(rank)] = read_stream(flag, item.substr(colon + 1), text);
  }
  return out;
}

std::vector<int> read_numbers(const std::string& flag, const std::string& text, int most) {
  std::vector<int> out;
  for (const auto& item : split(text, ',')) {
    if (!is_digits(trimmed(item)))
      throw ConfigError("--", flag, ' ', text, ": expected numbers with commas between them, as 0,2");
    out.push_back(std::stoi(trimmed(item)));
    if (out.back() >= most) {
      throw ConfigError("--", flag, ' ', text, ": there is no local rank ", out.back(), " of ", most,
                        "; they go from 0 to ", most - 1);
    }
  }
  return out;
}

std::vector<std::string> read_texts(const std::string& text) {
  std::vector<std::string> out;
  std::string item;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_comma = text[i] == ',';
    if (is_comma && i + 1 < text.size() && text[i + 1] == ',') {
      item += ',';
      ++i;
    } else if (is_comma) {
      if (!item.empty()) out.push_back(item);
      item.clear();
    } else {
      item += text[i];
    }
  }
  if (!item.empty()) out.push_back(item);
  return out;
}

std::vector<std::string> read_words(const std::string& flag, const std::string& text) {
  std::vector<std::string> out;
  for (const auto& item : split(text, ',')) {
    out.push_back(trimmed(item));
    if (out.back().empty())
      throw ConfigError("--", flag, ' ', text, ": expected words with commas between them, as 0,1");
    if (std::count(out.begin(), out.end(), out.back()) > 1) {
      throw ConfigError("--", flag, ' ', text, ": ", out.back(), " stands there twice; name each once");
    }
  }
  return out;
}

NodeRange read_nodes(const std::string& text) {
  const auto bounds = split(text, ':');
  if (bounds.size() > 2 || !std::all_of(bounds.begin(), bounds.end(), is_digits) || std::stoi(bounds[0]) < 1) {
    throw ConfigError("--nnodes ", text, ": expected a number of nodes from 1, or MIN:MAX");
  }
  const int least = std::stoi(bounds.front()), most = std::stoi(bounds.back());
  if (least > most) throw ConfigError("--nnodes ", text, ": MIN is above MAX; type --nnodes ", most, ':', least);
  return {least, most};
}

std::optional<int> whole(const std::optional<std::string>& text) {
  int value = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  return error == std::errc() && end == text->data() + text->size() ? std::optional(value) : std::nullopt;
}

std::optional<std::string> value_in(const std::vector<std::string>& words, const std::string& option) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == option && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with(option + "=")) return words[i].substr(option.size() + 1);
  }
  return std::nullopt;
}

HostPort read_endpoint(const std::string& flag, const std::string& text, int port_if_none) {
  HostPort out{text, port_if_none};
  const size_t bracket = text.find(']');
  const bool is_bare_ipv6 = bracket == std::string::npos && std::count(text.begin(), text.end(), ':') > 1;
  const size_t colon = is_bare_ipv6 ? std::string::npos : text.find(':', bracket == std::string::npos ? 0 : bracket);
  if (colon != std::string::npos) {
    const std::string port = text.substr(colon + 1);
    if (!is_digits(port) || std::stoi(port) > 65535) {
      throw ConfigError("--", flag, ' ', text, ": the port is no number up to 65535; type HOST:PORT");
    }
    out = {text.substr(0, colon), std::stoi(port)};
  }
  if (out.host.starts_with('[') && out.host.ends_with(']')) out.host = out.host.substr(1, out.host.size() - 2);
  if (out.host.empty() || out.host.find_first_of(" /[]") != std::string::npos) {
    throw ConfigError("--", flag, ' ', text, ": expected HOST:PORT, as node1:29400");
  }
  return out;
}

namespace {

// As torchrun reads it.
bool read_truth(const std::string& what, const std::string& text) {
  std::string word = text;
  for (char& letter : word) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  for (const char* yes : {"1", "true", "t", "yes", "y"}) {
    if (word == yes) return true;
  }
  for (const char* no : {"0", "false", "f", "no", "n"}) {
    if (word == no) return false;
  }
  throw ConfigError(what, '=', text, ": expected true or false");
}

}  // namespace

RendezvousConf read_rendezvous_conf(const std::string& text) {
  constexpr double kMost = 7 * 24 * 3600;
  const std::vector<std::string> known = {"join_timeout",
                                          "timeout",
                                          "last_call_timeout",
                                          "close_timeout",
                                          "read_timeout",
                                          "is_host",
                                          "keep_alive_interval",
                                          "keep_alive_max_attempt",
                                          "rank",
                                          "use_libuv",
                                          "store_type",
                                          "heartbeat_timeout",
                                          "protocol",
                                          "cacert",
                                          "ca_cert",
                                          "cert",
                                          "ssl_cert",
                                          "key",
                                          "ssl_cert_key",
                                          "etcd_prefix",
                                          "user",
                                          "password"};
  RendezvousConf conf;
  if (text.empty()) return conf;
  std::map<std::string_view, std::string*> texts = {
      {"protocol", &conf.protocol},     {"cacert", &conf.ca_file}, {"ca_cert", &conf.ca_file},
      {"ssl_cert", &conf.cert_file},    {"cert", &conf.cert_file}, {"key", &conf.key_file},
      {"ssl_cert_key", &conf.key_file}, {"user", &conf.user},      {"password", &conf.password}};
  std::map<std::string_view, double*> times = {
      {"join_timeout", &conf.timeout}, {"timeout", &conf.timeout}, {"last_call_timeout", &conf.last_call}};
  const std::vector<std::string> unused_times = {"close_timeout", "read_timeout", "keep_alive_interval",
                                                 "keep_alive_max_attempt", "heartbeat_timeout"};
  for (const auto& item : split(text, ',')) {
    const size_t equals = item.find('=');
    const std::string key = trimmed(item.substr(0, equals));
    if (equals == std::string::npos || key.empty()) {
      throw ConfigError("--rdzv-conf: expected KEY=VALUE with commas between them, as join_timeout=60");
    }
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw ConfigError("--rdzv-conf: torchrun knows no ", key, config::did_you_mean(key, known));
    }
    if (key == "etcd_prefix") {
      throw ConfigError("--rdzv-conf etcd_prefix: a job's keys lie under its --rdzv-id here; leave it out");
    }
    const std::string value = trimmed(item.substr(equals + 1));
    if (texts.contains(key)) *texts[key] = value;
    if (key == "is_host") conf.is_host = read_truth("--rdzv-conf is_host", value);
    if (std::find(unused_times.begin(), unused_times.end(), key) != unused_times.end()) {
      config::read_number("rdzv-conf " + key, value, 0.0, kMost);
    }
    if (times.contains(key)) *times[key] = config::read_number("rdzv-conf " + key, value, 0.001, kMost);
  }
  if (conf.protocol != "http" && conf.protocol != "https") {
    throw ConfigError("--rdzv-conf protocol=", conf.protocol, ": expected http or https");
  }
  return conf;
}

void check_signals(const std::string& text) {
  static const std::set<std::string> kPassedOn = {"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"};
  for (const auto& name : split(text, ',')) {
    if (kPassedOn.count(trimmed(name)) > 0) continue;
    const std::vector<std::string> known(kPassedOn.begin(), kPassedOn.end());
    throw ConfigError("--signals-to-handle ", text, ": ", trimmed(name), " is not passed on; of signals ",
                      config::joined(known, ", "), " can be");
  }
}

}  // namespace lockstep::apps
