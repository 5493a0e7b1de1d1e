#include "lockstep/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace lockstep {
namespace {

constexpr char kEscape = '\033';

// In characters of UTF-8.
size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char each) { return (each & 0xc0) != 0x80; }));
}

// Where the text of a line begins: behind its indentation, and behind a label with two spaces after it, as in
// "  optimizer   sgd".
size_t indent_of(std::string_view line) {
  const size_t first = std::min(line.find_first_not_of(' '), line.size());
  const size_t gap = line.find("  ", first);
  constexpr size_t kLongestLabel = 16;
  if (first == 0 || gap == std::string_view::npos || gap - first > kLongestLabel) return first + 2;
  return std::min(line.find_first_not_of(' ', gap), line.size());
}

// The place after the escape sequence that begins at `at`.
size_t after_escape(std::string_view line, size_t at) {
  if (at + 1 >= line.size()) return line.size();
  const char kind = line[at + 1];
  if (kind == ']') {  // a command to the terminal's system, up to BEL or ESC backslash
    for (size_t end = at + 2; end < line.size(); ++end) {
      if (line[end] == '\a') return end + 1;
      if (line[end] == kEscape) return std::min(end + 2, line.size());
    }
    return line.size();
  }
  if (kind != '[') return at + 2;
  size_t end = at + 2;
  while (end < line.size() && (line[end] < '@' || line[end] > '~')) ++end;
  return std::min(end + 1, line.size());
}

}  // namespace

int terminal_columns(int descriptor) {
  if (isatty(descriptor) != 1) return 0;
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string wrap_line(std::string_view line, int columns) {
  const auto most = static_cast<size_t>(std::max(columns, 0));
  if (most == 0 || width_of(line) <= most) return std::string(line);
  const std::string indent(std::min(indent_of(line), most / 2), ' ');
  std::string out;
  size_t width = 0;  // of the line being made
  for (size_t at = 0; at < line.size();) {
    // A word with the spaces before it.
    const size_t word = std::min(line.find_first_not_of(' ', at), line.size());
    const size_t end = std::min(line.find(' ', word), line.size());
    const size_t letters = width_of(line.substr(word, end - word));
    if (width > indent.size() && width + (word - at) + letters > most) {
      out += '\n' + indent;
      width = indent.size();
    } else {
      out += line.substr(at, word - at);
      width += word - at;
    }
    out += line.substr(word, end - word);
    width += letters;
    at = end;
  }
  return out;
}

std::string without_escapes(std::string_view line) {
  std::string out;
  for (size_t at = 0; at < line.size();) {
    const size_t escape = std::min(line.find(kEscape, at), line.size());
    out += line.substr(at, escape - at);
    at = escape < line.size() ? after_escape(line, escape) : escape;
  }
  return out;
}

}  // namespace lockstep
