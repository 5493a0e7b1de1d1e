// A data set that reads another one. It passes everything on, and derived classes change some of it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

class Wrapped : public Dataset {
 public:
  int64_t size() const override { return base_->size(); }
  std::vector<Field> fields() const override { return base_->fields(); }
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, ReadStats& stats) const override {
    base_->read(index, draw, rows, stats);
  }
  std::string fingerprint() const override { return base_->fingerprint(); }
  std::string description() const override { return base_->description(); }
  std::string transforms() const override { return base_->transforms(); }
  int64_t classes() const override { return base_->classes(); }
  std::vector<std::string> class_names() const override { return base_->class_names(); }
  int64_t class_of(int64_t index) const override { return base_->class_of(index); }
  std::string name_of(int64_t index) const override { return base_->name_of(index); }
  std::string example() const override { return base_->example(); }
  void will_need(std::span<const int64_t> indices) const override { base_->will_need(indices); }
  bool decodes() const override { return base_->decodes(); }
  std::vector<Listed> listing() const override { return base_->listing(); }

  std::shared_ptr<const Dataset> for_evaluation() const final {
    auto plain = base_->for_evaluation();
    return plain == nullptr ? nullptr : around(std::move(plain));
  }

 protected:
  explicit Wrapped(std::shared_ptr<const Dataset> base) : base_(std::move(base)) {}
  const Dataset& base() const { return *base_; }

 private:
  // Returns the same change of another base, which has the same samples.
  virtual std::shared_ptr<const Dataset> around(std::shared_ptr<const Dataset> base) const = 0;

  std::shared_ptr<const Dataset> base_;
};

}  // namespace lockstep::data
