// Views, permutations, parts and joins of tensors in ONNX.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "lockstep/exporting/operator.h"

namespace lockstep::exporting {
namespace {

using Integers = std::vector<int64_t>;

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();  // of a part that goes on to the last

// Only the batch, and the height and width of images whose sizes vary, are no numbers of the file. Where they lie in
// another order, export_module() sees that the numbers are not those of other images.
bool is_number(const Operator& op, size_t dimension, size_t dimensions) {
  const bool is_side = dimensions >= 4 && dimension + 2 >= dimensions;
  return dimension > 0 && !(op.graph.sizes_vary && is_side);
}

// Replaces the dimensions [begin, end) of `self` by `middle`. 0 leaves a dimension in its place as it is.
void reshape_middle(Operator& op, size_t begin, size_t end, const Integers& middle) {
  const Integers in = op.sizes("self");
  Integers shape(begin, 0);
  shape.insert(shape.end(), middle.begin(), middle.end());
  bool are_numbers = true;
  for (size_t i = end; i < in.size(); ++i) are_numbers = are_numbers && is_number(op, i, in.size());
  if (are_numbers) {
    shape.insert(shape.end(), in.begin() + static_cast<ptrdiff_t>(end), in.end());
    return op.becomes("Reshape", {op.tensor("self"), op.graph.constant(shape)});
  }
  const std::string rest = op.graph.add("Shape", {op.tensor("self")}, {{"start", static_cast<int64_t>(end)}});
  const std::string all = op.graph.add("Concat", {op.graph.constant(shape), rest}, {{"axis", int64_t{0}}});
  op.becomes("Reshape", {op.tensor("self"), all});
}

void flatten(Operator& op) {
  const Integers in = op.sizes("self");
  const auto begin = static_cast<size_t>(op.dimension("start_dim", "self")),
             end = static_cast<size_t>(op.dimension("end_dim", "self")) + 1;
  if (begin == 1 && end == in.size()) return op.becomes("Flatten", {op.tensor("self")}, {{"axis", int64_t{1}}});
  bool are_numbers = true;
  for (size_t i = begin; i < end; ++i) are_numbers = are_numbers && is_number(op, i, in.size());
  const int64_t product = std::accumulate(in.begin() + static_cast<ptrdiff_t>(begin),
                                          in.begin() + static_cast<ptrdiff_t>(end), int64_t{1}, std::multiplies<>());
  reshape_middle(op, begin, end, {are_numbers ? product : -1});
}

void unflatten(Operator& op) {
  const auto dim = static_cast<size_t>(op.dimension("dim", "self"));
  reshape_middle(op, dim, dim + 1, op.integers("sizes"));
}

// Numbers that hold for other inputs, as check_trace() has seen.
void reshape(Operator& op) {
  op.becomes("Reshape", {op.tensor("self"), op.graph.constant(op.integers(op.has("shape") ? "shape" : "size"))});
}

// The order of so many dimensions with two of them exchanged.
Integers exchanged(size_t dimensions, int64_t a, int64_t b) {
  Integers order(dimensions);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  return order;
}

void transpose(Operator& op) {
  const Integers order = exchanged(op.sizes("self").size(), op.dimension("dim0", "self"), op.dimension("dim1", "self"));
  op.becomes("Transpose", {op.tensor("self")}, {{"perm", order}});
}

void transpose_matrix(Operator& op) { op.becomes("Transpose", {op.tensor("self")}, {{"perm", Integers{1, 0}}}); }

void permute(Operator& op) {
  Integers order = op.integers("dims");
  for (int64_t& dim : order) dim += dim < 0 ? static_cast<int64_t>(order.size()) : 0;
  op.becomes("Transpose", {op.tensor("self")}, {{"perm", order}});
}

void squeeze(Operator& op) {
  const int64_t dim = op.dimension("dim", "self");
  if (op.sizes("self")[static_cast<size_t>(dim)] != 1) return op.is(op.tensor("self"));
  op.becomes("Squeeze", {op.tensor("self"), op.graph.constant(Integers{dim})});
}

void unsqueeze(Operator& op) {
  op.becomes("Unsqueeze", {op.tensor("self"), op.graph.constant(Integers{op.integer("dim")})});
}

void part(Operator& op, int64_t begin, int64_t end, int64_t step) {
  op.becomes("Slice", {op.tensor("self"), op.graph.constant(Integers{begin}), op.graph.constant(Integers{end}),
                       op.graph.constant(Integers{op.dimension("dim", "self")}), op.graph.constant(Integers{step})});
}

void slice(Operator& op) {
  part(op, op.has("start") ? op.integer("start") : 0, op.has("end") ? op.integer("end") : kEnd, op.integer("step"));
}

void narrow(Operator& op) {
  const int64_t begin = op.integer("start");
  part(op, begin, begin + op.integer("length"), 1);
}

void select(Operator& op) {
  const std::string index = op.graph.constant(at::scalar_tensor(op.integer("index"), at::kLong));
  op.becomes("Gather", {op.tensor("self"), index}, {{"axis", op.dimension("dim", "self")}});
}

// Parts of `most` along a dimension; the last one has what is left.
void split_into(Operator& op, int64_t most) {
  const int64_t dim = op.dimension("dim", "self");
  Integers lengths;
  for (int64_t left = op.sizes("self")[static_cast<size_t>(dim)]; left > 0; left -= most) {
    lengths.push_back(std::min(left, most));
  }
  op.are(
      op.graph.add_several(lengths.size(), "Split", {op.tensor("self"), op.graph.constant(lengths)}, {{"axis", dim}}));
}

void chunk(Operator& op) {
  const int64_t size = op.sizes("self")[static_cast<size_t>(op.dimension("dim", "self"))], parts = op.integer("chunks");
  split_into(op, (size + parts - 1) / parts);
}

void split(Operator& op) { split_into(op, op.integer("split_size")); }

void join(Operator& op) { op.becomes("Concat", op.tensors("tensors"), {{"axis", op.integer("dim")}}); }

void stack(Operator& op) {
  const std::string dim = op.graph.constant(Integers{op.integer("dim")});
  std::vector<std::string> parts = op.tensors("tensors");
  for (std::string& each : parts) each = op.graph.add("Unsqueeze", {each, dim});
  op.becomes("Concat", parts, {{"axis", op.integer("dim")}});
}

// libtorch counts from the last dimension on, before and behind each; ONNX has all that is before first.
void pad(Operator& op) {
  if (op.has("mode") && op.text("mode") != "constant") op.refuse("repeats pixels");
  const Integers given = op.integers("pad");
  const size_t dimensions = op.sizes("self").size();
  Integers pads(2 * dimensions, 0);
  for (size_t i = 0; i < given.size() / 2; ++i) {
    pads[dimensions - 1 - i] = given[2 * i];
    pads[2 * dimensions - 1 - i] = given[2 * i + 1];
  }
  const double value = op.has("value") ? op.number("value") : 0;
  op.becomes("Pad", {op.tensor("self"), op.graph.constant(pads), op.graph.constant(value)});
}

int64_t keeps_dimensions(const Operator& op) { return op.flag("keepdim") ? 1 : 0; }

void mean(Operator& op) {
  if (!op.has("dim")) return op.becomes("ReduceMean", {op.tensor("self")}, {{"keepdims", int64_t{0}}});
  op.becomes("ReduceMean", {op.tensor("self")}, {{"axes", op.integers("dim")}, {"keepdims", keeps_dimensions(op)}});
}

void sum(Operator& op) {
  if (!op.has("dim")) return op.becomes("ReduceSum", {op.tensor("self")}, {{"keepdims", int64_t{0}}});
  op.becomes("ReduceSum", {op.tensor("self"), op.graph.constant(op.integers("dim"))},
             {{"keepdims", keeps_dimensions(op)}});
}

}  // namespace

const Translations& shape_translations() {
  static const Translations table = {
      {"flatten", flatten},
      {"unflatten", unflatten},
      {"view", reshape},
      {"reshape", reshape},
      {"transpose", transpose},
      {"t", transpose_matrix},
      {"permute", permute},
      {"squeeze", squeeze},
      {"unsqueeze", unsqueeze},
      {"slice", slice},
      {"narrow", narrow},
      {"select", select},
      {"chunk", chunk},
      {"split", split},
      {"cat", join},
      {"stack", stack},
      {"pad", pad},
      {"constant_pad_nd", pad},
      {"mean", mean},
      {"sum", sum},
  };
  return table;
}

}  // namespace lockstep::exporting
