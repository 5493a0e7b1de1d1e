// One pass over items that come one by one, for range-based for loops.
#pragma once

#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

namespace lockstep::data {

// An input range. Copies share their place: an item comes once. One thread.
template <typename T>
class Pass {
 public:
  using Item = T;
  using Next = std::function<std::optional<Item>()>;

  // `next` returns the next item, and from the end on nothing.
  explicit Pass(Next next) : next_(std::make_shared<Next>(std::move(next))) {}

  std::optional<Item> next() const { return (*next_)(); }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Item;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(const Pass& pass) : pass_(pass), item_(pass_.next()) {}
    const Item& operator*() const { return *item_; }
    const Item* operator->() const { return &*item_; }
    Iterator& operator++() {
      item_ = pass_.next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t /*end*/) const { return !item_; }

   private:
    Pass pass_;
    std::optional<Item> item_;
  };
  Iterator begin() const { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  std::shared_ptr<Next> next_;
};

}  // namespace lockstep::data
