// What every rank would find out alike, found out once.
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <utility>

namespace lockstep::data {

// Computes a text on one rank and returns it on all, so that a million files are listed once. By default each rank
// computes it for itself.
class OnOneRank {
 public:
  using Compute = std::function<std::string()>;

  OnOneRank() = default;
  template <std::invocable<const Compute&> Run>
  OnOneRank(Run run) : run_(std::move(run)) {}

  // A collective where it was made of one.
  std::string operator()(const Compute& compute) const { return run_(compute); }

 private:
  std::function<std::string(const Compute&)> run_ = [](const Compute& compute) { return compute(); };
};

}  // namespace lockstep::data
