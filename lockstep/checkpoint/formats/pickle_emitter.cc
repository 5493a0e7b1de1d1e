#include "lockstep/checkpoint/formats/pickle_emitter.h"

#include <bit>
#include <limits>

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {

using namespace std::string_view_literals;

void PickleEmitter::put(const Value& value) {
  std::visit(
      [&](const auto& content) {
        using Content = std::decay_t<decltype(content)>;
        if constexpr (std::is_same_v<Content, std::monostate>) {
          put_none();
        } else if constexpr (std::is_same_v<Content, Bytes>) {
          put_bytes(content.data);
        } else if constexpr (std::is_same_v<Content, at::Tensor>) {
          put_tensor(content);
        } else if constexpr (std::is_same_v<Content, std::string>) {
          put(std::string_view(content));
        } else if constexpr (std::is_same_v<Content, Opaque>) {
          throw BugError("an object of the class ", content.name, ", of which nothing was read, can't be written");
        } else {
          put(content);
        }
      },
      value.content());
}

void PickleEmitter::put(int64_t number) {
  if (number >= 0 && number < 256) {
    out_ += 'K';
    put_raw(static_cast<uint8_t>(number));
  } else if (number == static_cast<int32_t>(number)) {
    out_ += 'J';
    put_raw(static_cast<int32_t>(number));
  } else {
    out_ += "\x8a\x08"sv;
    put_raw(number);
  }
}

void PickleEmitter::put(double number) {
  out_ += 'G';
  put_raw(__builtin_bswap64(std::bit_cast<uint64_t>(number)));
}

void PickleEmitter::put(std::string_view text) {
  if (text.size() > std::numeric_limits<uint32_t>::max()) throw BugError("a string of ", human_bytes(text.size()));
  out_ += 'X';
  put_raw(static_cast<uint32_t>(text.size()));
  out_ += text;
}

void PickleEmitter::put(at::IntArrayRef numbers) {
  out_ += '(';
  for (const int64_t number : numbers) put(number);
  out_ += 't';
}

void PickleEmitter::put_global(std::string_view module, std::string_view name) {
  out_.append("c").append(module).append("\n").append(name).append("\n");
}

void PickleEmitter::put(const Key& key) {
  if (const auto* text = std::get_if<std::string>(&key)) return put(std::string_view(*text));
  put(std::get<int64_t>(key));
}

void PickleEmitter::put(const List& items) {
  out_ += "](";
  for (const Value& item : items) put(item);
  out_ += 'e';
}

void PickleEmitter::put(const Tuple& tuple) {
  out_ += '(';
  for (const Value& item : tuple.items) put(item);
  out_ += 't';
}

void PickleEmitter::put(const Dict& dict) {
  out_ += "}(";
  for (const auto& [key, value] : dict) {
    put(key);
    put(value);
  }
  out_ += 'u';
}

}  // namespace lockstep::checkpoint
