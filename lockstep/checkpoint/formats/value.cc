#include "lockstep/checkpoint/formats/value.h"

#include <algorithm>
#include <array>
#include <bit>

#include "lockstep/checkpoint/formats/key_hash.h"

namespace lockstep::checkpoint {
namespace {

// A dict of at most so many entries is searched from front to back.
constexpr size_t kSearched = 8;

size_t slots_for(size_t entries) { return entries <= kSearched ? 0 : 2 * std::bit_ceil(entries); }

}  // namespace

std::string key_text(const Key& key) {
  const auto* text = std::get_if<std::string>(&key);
  return text ? *text : std::to_string(std::get<int64_t>(key));
}

// The entries, and an index of them: a table of open addressing whose slots hold an entry's number plus one.
struct Dict::Table {
  std::vector<Entry> entries;
  std::vector<uint32_t> slots;

  // The slot that holds the key, or the free one where it belongs.
  uint32_t& slot_of(const Key& key) {
    const size_t mask = slots.size() - 1;
    size_t slot = key_hash(key) & mask;
    while (slots[slot] != 0 && entries[slots[slot] - 1].key != key) slot = (slot + 1) & mask;
    return slots[slot];
  }
  Entry* find(const Key& key) {
    if (slots.empty()) {
      const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.key == key; });
      return found == entries.end() ? nullptr : &*found;
    }
    const uint32_t number = slot_of(key);
    return number == 0 ? nullptr : &entries[number - 1];
  }
  void index(size_t expected) {
    slots.assign(slots_for(expected), 0);
    for (size_t i = 0; i < entries.size() && !slots.empty(); ++i)
      slot_of(entries[i].key) = static_cast<uint32_t>(i + 1);
  }
  void add(Entry entry) {
    if (2 * (entries.size() + 1) > slots.size() && entries.size() >= kSearched) index(2 * entries.size());
    entries.push_back(std::move(entry));
    if (!slots.empty()) slot_of(entries.back().key) = static_cast<uint32_t>(entries.size());
  }
};

Dict::Dict() = default;
Dict::Dict(const Dict& other) : table_(other.table_ ? std::make_unique<Table>(*other.table_) : nullptr) {}
Dict::Dict(Dict&&) noexcept = default;
Dict& Dict::operator=(const Dict& other) {
  table_ = other.table_ ? std::make_unique<Table>(*other.table_) : nullptr;
  return *this;
}
Dict& Dict::operator=(Dict&&) noexcept = default;
Dict::~Dict() = default;

Dict::Dict(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) set(entry.key, entry.value);
}

void Dict::reserve(size_t entries) {
  if (!table_) table_ = std::make_unique<Table>();
  table_->entries.reserve(entries);
  if (slots_for(entries) > table_->slots.size()) table_->index(entries);
}

uint64_t Dict::bytes_for(size_t entries) {
  return sizeof(Table) + entries * sizeof(Entry) + slots_for(entries) * sizeof(uint32_t);
}

void Dict::set(Key key, Value value) {
  if (!table_) table_ = std::make_unique<Table>();
  if (Entry* entry = table_->find(key)) {
    entry->value = std::move(value);
  } else {
    table_->add({std::move(key), std::move(value)});
  }
}

const Value* Dict::find(const Key& key) const {
  const Entry* entry = table_ ? table_->find(key) : nullptr;
  return entry == nullptr ? nullptr : &entry->value;
}

size_t Dict::size() const { return table_ ? table_->entries.size() : 0; }
bool Dict::empty() const { return size() == 0; }
std::vector<Dict::Entry>::const_iterator Dict::begin() const {
  return table_ ? table_->entries.cbegin() : std::vector<Entry>::const_iterator();
}
std::vector<Dict::Entry>::const_iterator Dict::end() const {
  return table_ ? table_->entries.cend() : std::vector<Entry>::const_iterator();
}

Value::Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

Value::Value(Boolean boolean) : content_(boolean.value) {}
Value::Value(Whole number) : content_(number.value) {}
Value::Value(Real number) : content_(number.value) {}
Value::Value(std::string text) : content_(std::move(text)) {}
Value::Value(std::string_view text) : content_(std::string(text)) {}
Value::Value(const char* text) : content_(std::string(text)) {}
Value::Value(Bytes bytes) : content_(std::move(bytes)) {}
Value::Value(at::Tensor tensor) : content_(std::move(tensor)) {}
Value::Value(List items) : content_(std::move(items)) {}
Value::Value(Tuple tuple) : content_(std::move(tuple)) {}
Value::Value(Dict dict) : content_(std::move(dict)) {}
Value::Value(Opaque opaque) : content_(std::move(opaque)) {}

const List* Value::items() const {
  if (const auto* list = get_if<List>()) return list;
  const auto* tuple = get_if<Tuple>();
  return tuple ? &tuple->items : nullptr;
}

std::string_view Value::kind() const {
  static constexpr std::array<std::string_view, std::variant_size_v<Content>> kKinds = {
      "None",
      "true or false",
      "a whole number",
      "a number",
      "a string",
      "bytes",
      "a tensor",
      "a list",
      "a tuple",
      "a dict",
      "an object of an unknown class"};
  return kKinds[content_.index()];
}

}  // namespace lockstep::checkpoint
