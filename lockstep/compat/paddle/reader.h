// Paddle's readers: paddle.batch, the decorators of paddle.reader, and fluid.contrib.reader.distributed_batch_reader.
//
//   const auto digits = paddle::reader_of(splits.train);
//   const auto batches = paddle::batch(paddle::reader::shuffle(digits, /*buf_size=*/500), 64, /*drop_last=*/true);
//   const auto own = paddle::distributed_batch_reader(batches);
//   for (const auto& samples : own()) {
//     const data::Batch batch = paddle::read(samples);
//     …
//   }
//
// A reader is a function without arguments that begins a pass over its items. Those of a program's own are such
// functions, too. What is drawn is keyed by a seed and the pass, so that all ranks, each of which goes through the
// whole order, deal the same batches. A sample of a data set is read when a batch is made of it: what other ranks train
// on costs nothing here. A reader and its passes belong to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/fnv.h"
#include "lockstep/compat/paddle/paddle.h"
#include "lockstep/data/pass.h"
#include "lockstep/data/permutation.h"
#include "lockstep/data/read_sample.h"

namespace lockstep::paddle {

template <typename Item>
using Reader = std::function<data::Pass<Item>()>;

// What a reader's passes give.
template <typename Make>
using ItemOf = typename std::invoke_result_t<Make>::Item;

// A sample that is not read yet.
struct Sample {
  std::shared_ptr<const data::Dataset> dataset;
  data::SampleRead place;
};

// Gives a data set's samples in its own order. Each pass is an epoch, whose samples are augmented by numbers of its
// own, keyed by the seed.
Reader<Sample> reader_of(std::shared_ptr<const data::Dataset> dataset, uint64_t seed = 0);

// Reads the samples, on the calling thread, as the rows of a batch. Throws ConfigError for samples of several data sets
// or none, and what Dataset::read throws.
data::Batch read(const std::vector<Sample>& samples);

// paddle.batch: items in lists of `batch_size`, of which the last may be shorter; with `drop_last` it is left out.
// Throws ConfigError for a batch_size below 1.
template <typename Make>
Reader<std::vector<ItemOf<Make>>> batch(Make reader, int64_t batch_size, bool drop_last = false) {
  using Items = std::vector<ItemOf<Make>>;
  if (batch_size < 1) throw ConfigError("paddle::batch: batch_size is ", batch_size, "; 1 is the least");
  return [=] {
    return data::Pass<Items>([pass = reader(), batch_size, drop_last]() -> std::optional<Items> {
      Items items;
      while (std::ssize(items) < batch_size) {
        auto item = pass.next();
        if (!item) break;
        items.push_back(*std::move(item));
      }
      if (items.empty() || (drop_last && std::ssize(items) < batch_size)) return std::nullopt;
      return items;
    });
  };
}

// fluid.contrib.reader.distributed_batch_reader: of each round of `env.nranks` batches this rank's own. An incomplete
// last round is dropped, so that all ranks have as many.
template <typename Make>
Reader<ItemOf<Make>> distributed_batch_reader(Make batch_reader, const Env& env = Env::current()) {
  using Item = ItemOf<Make>;
  return [batch_reader, ranks = env.nranks, rank = env.local_rank] {
    return data::Pass<Item>([pass = batch_reader(), ranks, rank]() -> std::optional<Item> {
      std::optional<Item> own;
      for (int turn = 0; turn < ranks; ++turn) {
        auto item = pass.next();
        if (!item) return std::nullopt;
        if (turn == rank) own = std::move(item);
      }
      return own;
    });
  };
}

namespace reader {

// paddle.reader.map_readers: func(an item of each reader), until the first of them ends.
template <typename Func, typename... Makes>
auto map_readers(Func func, Makes... readers) {
  using Item = std::invoke_result_t<Func, ItemOf<Makes>...>;
  return Reader<Item>([=] {
    return data::Pass<Item>([func, passes = std::make_tuple(readers()...)]() -> std::optional<Item> {
      return std::apply(
          [&](const auto&... pass) -> std::optional<Item> {
            std::tuple items{pass.next()...};
            const bool all = std::apply([](const auto&... item) { return (item.has_value() && ...); }, items);
            if (!all) return std::nullopt;
            return std::apply([&](auto&... item) { return func(*std::move(item)...); }, items);
          },
          passes);
    });
  });
}

// paddle.reader.shuffle: `buf_size` items at a time are gathered and given in an order of the seed's, another one for
// each of a reader's passes. Throws ConfigError for a buf_size below 1.
template <typename Make>
Reader<ItemOf<Make>> shuffle(Make reader, int64_t buf_size, uint64_t seed = 0) {
  using Item = ItemOf<Make>;
  if (buf_size < 1) throw ConfigError("paddle::reader::shuffle: buf_size is ", buf_size, "; 1 is the least");
  struct Buffer {
    std::vector<Item> items;
    uint64_t number = 0, given = 0;
  };
  return [=, passes = std::make_shared<uint32_t>(0)] {
    const uint32_t epoch = (*passes)++;
    const auto next = [=, pass = batch(reader, buf_size)(), now = Buffer()]() mutable -> std::optional<Item> {
      if (now.given == now.items.size()) {
        auto more = pass.next();
        if (!more) return std::nullopt;
        now = {.items = *std::move(more), .number = now.number + 1, .given = 0};
      }
      const data::Permutation order(now.items.size(), fnv1a(fnv1a(kFnvSeed, seed), now.number), epoch);
      return std::move(now.items[order(now.given++)]);
    };
    return data::Pass<Item>(next);
  };
}

// paddle.reader.chain: the items of one reader after those of another, all of one type.
template <typename First, typename... Makes>
Reader<ItemOf<First>> chain(First first, Makes... readers) {
  using Item = ItemOf<First>;
  const std::vector<Reader<Item>> all = {first, readers...};
  return [all] {
    std::vector<data::Pass<Item>> passes;
    for (const auto& reader : all) passes.push_back(reader());
    return data::Pass<Item>([passes, at = size_t{0}]() mutable -> std::optional<Item> {
      for (; at < passes.size(); ++at) {
        if (auto item = passes[at].next()) return item;
      }
      return std::nullopt;
    });
  };
}

// paddle.reader.compose: tuples of an item of each reader. Where one ends before another, the pass throws DataError.
template <typename... Makes>
Reader<std::tuple<ItemOf<Makes>...>> compose(Makes... readers) {
  using Item = std::tuple<ItemOf<Makes>...>;
  return [=] {
    return data::Pass<Item>([passes = std::make_tuple(readers()...)]() -> std::optional<Item> {
      std::tuple items = std::apply([](const auto&... pass) { return std::tuple{pass.next()...}; }, passes);
      return std::apply(
          [](auto&... item) -> std::optional<Item> {
            const size_t given = (size_t{item.has_value()} + ...);
            if (given == 0) return std::nullopt;
            if (given < sizeof...(Makes)) {
              throw DataError("paddle::reader::compose: ", sizeof...(Makes) - given, " of ", sizeof...(Makes),
                              " readers ended before the others; map_readers() takes readers of other lengths");
            }
            return Item(*std::move(item)...);
          },
          items);
    });
  };
}

// paddle.reader.firstn: the first `n` items.
template <typename Make>
Reader<ItemOf<Make>> firstn(Make reader, int64_t n) {
  using Item = ItemOf<Make>;
  return [=] {
    return data::Pass<Item>([pass = reader(), left = n]() mutable -> std::optional<Item> {
      return left-- > 0 ? pass.next() : std::nullopt;
    });
  };
}

// paddle.reader.cache: the items of the reader's first whole pass, which are kept in memory.
template <typename Make>
Reader<ItemOf<Make>> cache(Make reader) {
  using Item = ItemOf<Make>;
  return [reader, kept = std::make_shared<std::optional<std::vector<Item>>>()] {
    if (!kept->has_value()) {
      std::vector<Item> items;
      for (const Item& item : reader()) items.push_back(item);
      *kept = std::move(items);
    }
    return data::Pass<Item>([kept, at = size_t{0}]() mutable -> std::optional<Item> {
      return at < (*kept)->size() ? std::optional((**kept)[at++]) : std::nullopt;
    });
  };
}

}  // namespace reader
}  // namespace lockstep::paddle
