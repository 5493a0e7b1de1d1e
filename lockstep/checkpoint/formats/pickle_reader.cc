#include "lockstep/checkpoint/formats/pickle_reader.h"

#include <array>
#include <bit>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/pickle_machine.h"
#include "lockstep/checkpoint/formats/pickle_values.h"

namespace lockstep::checkpoint {
namespace {

constexpr size_t kMaxOperations = 16u << 20;
constexpr unsigned char kStop = '.';
constexpr unsigned char kNewestProtocol = 5;

using Machine = PickleMachine;
using Kind = Container::Kind;
using Operation = void (*)(Machine&);

struct OperationRow {
  unsigned char code;
  Operation run;
};

double big_endian_double(Machine& m) { return std::bit_cast<double>(__builtin_bswap64(m.cursor.number<uint64_t>())); }

void check_protocol(Machine& m) {
  const auto protocol = m.cursor.number<uint8_t>();
  if (protocol > kNewestProtocol) throw Fault{cat("pickle protocol ", static_cast<int>(protocol), " is not known")};
}

void push_global(Machine& m) {
  const std::string_view module = m.cursor.line();
  m.push_global(module, m.cursor.line());
}

void instance(Machine& m) {
  const std::string_view module = m.cursor.line();
  m.instance(module, m.cursor.line());
}

// The operations in the order of the protocols' own list (Lib/pickletools.py). Missing ones are refused: numbers and
// persistent ids as text, extension registries, out-of-band buffers.
constexpr OperationRow kOperations[] = {
    {'K', [](Machine& m) { m.push(int64_t{m.cursor.number<uint8_t>()}); }},
    {'M', [](Machine& m) { m.push(int64_t{m.cursor.number<uint16_t>()}); }},
    {'J', [](Machine& m) { m.push(int64_t{m.cursor.number<int32_t>()}); }},
    {0x8a, [](Machine& m) { m.push_integer(m.cursor.number<uint8_t>()); }},
    {0x8b, [](Machine& m) { m.push_integer(m.cursor.number<uint32_t>()); }},
    {'U', [](Machine& m) { m.push_text(m.cursor.number<uint8_t>()); }},
    {'T', [](Machine& m) { m.push_text(m.cursor.number<uint32_t>()); }},
    {'C', [](Machine& m) { m.push_bytes(m.cursor.number<uint8_t>()); }},
    {'B', [](Machine& m) { m.push_bytes(m.cursor.number<uint32_t>()); }},
    {0x8e, [](Machine& m) { m.push_bytes(m.cursor.number<uint64_t>()); }},
    {0x96, [](Machine& m) { m.push_bytes(m.cursor.number<uint64_t>()); }},
    {'N', [](Machine& m) { m.push(None{}); }},
    {0x88, [](Machine& m) { m.push(true); }},
    {0x89, [](Machine& m) { m.push(false); }},
    {0x8c, [](Machine& m) { m.push_text(m.cursor.number<uint8_t>()); }},
    {'X', [](Machine& m) { m.push_text(m.cursor.number<uint32_t>()); }},
    {0x8d, [](Machine& m) { m.push_text(m.cursor.number<uint64_t>()); }},
    {'G', [](Machine& m) { m.push(big_endian_double(m)); }},
    {']', [](Machine& m) { m.push_container(Kind::kList); }},
    {'a', [](Machine& m) { m.append(); }},
    {'e', [](Machine& m) { m.append_marked(); }},
    {'l', [](Machine& m) { m.push_marked(Kind::kList); }},
    {')', [](Machine& m) { m.push_container(Kind::kTuple); }},
    {'t', [](Machine& m) { m.push_marked(Kind::kTuple); }},
    {0x85, [](Machine& m) { m.push_tuple(1); }},
    {0x86, [](Machine& m) { m.push_tuple(2); }},
    {0x87, [](Machine& m) { m.push_tuple(3); }},
    {'}', [](Machine& m) { m.push_container(Kind::kDict); }},
    {'d', [](Machine& m) { m.push_marked(Kind::kDict); }},
    {'s', [](Machine& m) { m.set_item(); }},
    {'u', [](Machine& m) { m.set_marked_items(); }},
    {0x8f, [](Machine& m) { m.push_container(Kind::kList); }},
    {0x90, [](Machine& m) { m.append_marked(); }},
    {0x91, [](Machine& m) { m.push_marked(Kind::kList); }},
    {'0', [](Machine& m) { m.pop(); }},
    {'2', [](Machine& m) { m.push(m.top()); }},
    {'(', [](Machine& m) { m.mark(); }},
    {'1', [](Machine& m) { m.pop_to_mark(); }},
    {'h', [](Machine& m) { m.recall(m.cursor.number<uint8_t>()); }},
    {'j', [](Machine& m) { m.recall(m.cursor.number<uint32_t>()); }},
    {'q', [](Machine& m) { m.memoize(m.cursor.number<uint8_t>()); }},
    {'r', [](Machine& m) { m.memoize(m.cursor.number<uint32_t>()); }},
    {0x94, [](Machine& m) { m.memoize_next(); }},
    {'c', push_global},
    {0x93, [](Machine& m) { m.push_stack_global(); }},
    {'R', [](Machine& m) { m.reduce(); }},
    {0x81, [](Machine& m) { m.reduce(); }},  // cls.__new__(cls, *arguments): the same for what is on the list
    {'b', [](Machine& m) { m.build(); }},
    {'i', instance},
    {'o', [](Machine& m) { m.reduce_marked(); }},
    {0x92, [](Machine& m) { m.reduce_with_keywords(); }},
    {0x80, check_protocol},
    {0x95, [](Machine& m) { m.cursor.number<uint64_t>(); }},  // a frame's length, of use to streams only
    {'Q', [](Machine& m) { m.load_persistent(); }},
};

constexpr std::array<Operation, 256> by_code() {
  std::array<Operation, 256> table{};
  for (const OperationRow& row : kOperations) table[row.code] = row.run;
  return table;
}
constexpr std::array<Operation, 256> kByCode = by_code();

// Executes operations up to the one that ends the pickle. `start` is the offset of the current one.
void run(Machine& machine, size_t& start) {
  for (size_t count = 0;; ++count) {
    start = machine.cursor.position();
    if (machine.cursor.left() == 0) throw Fault{"ends in the middle"};
    if (count == kMaxOperations) throw Fault{cat("more than ", kMaxOperations, " operations")};
    const auto code = machine.cursor.number<uint8_t>();
    if (code == kStop) return;
    if (kByCode[code] == nullptr)
      throw Fault{cat("operation ", static_cast<int>(code), " is none that a checkpoint needs")};
    kByCode[code](machine);
  }
}

}  // namespace

PickleResult read_pickle(std::string_view bytes, const PickleOptions& options) {
  return read_pickle(PickleBytes(bytes.substr(0, options.max_bytes)), options);
}

PickleResult read_pickle(const PickleBytes& bytes, const PickleOptions& options) {
  MemoryBudget own(kReadingMemory);
  PickleMachine machine(bytes, options.storages, options.budget == nullptr ? own : *options.budget);
  machine.heap.ignore_unknown = options.ignore_unknown;
  size_t start = 0;
  try {
    run(machine, start);
    PickleResult result{to_value(machine.heap, machine.pop(), {.tensor_bytes = options.max_tensor_bytes}),
                        machine.cursor.position()};
    machine.check_empty();
    return result;
  } catch (const Fault& fault) {
    throw DataError(options.name, ": byte ", start, ": ", fault.text);
  }
}

}  // namespace lockstep::checkpoint
