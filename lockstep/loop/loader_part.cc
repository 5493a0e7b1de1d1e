#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/data/order.h"
#include "lockstep/loop/part.h"
#include "lockstep/loop/skipped_values.h"

namespace lockstep::loop {
namespace {

using checkpoint::Dict;
using checkpoint::Value;
using checkpoint::ValueView;

// The place in the data, and what the batches from there on depend on.
class LoaderPart final : public Part {
 public:
  explicit LoaderPart(data::Loader& loader) : loader_(loader) {}
  std::string kind() const override { return "a place in the data"; }

  Value save(const ByParameter&) override {
    Dict state{{"epoch", loader_.position().epoch}, {"step", loader_.position().step}};
    for (const auto& [name, value] : options()) state.set(name, value);
    state.set("data", fingerprint());
    for (const auto& [name, what, text] : texts()) state.set(name, text);
    if (loader_.skipped() != nullptr) state.set("skipped", skipped_to_list(loader_.skipped()->all()));
    return state;
  }

  void check(const ValueView& saved) override {
    for (const auto& [name, value] : options()) {
      const auto found = saved.find(name);
      if (!found && name != "drop_last") continue;  // the trainer's files have neither seed nor shuffle
      const int64_t was = found ? found->integer() : 0;
      if (was == value) continue;
      throw ConfigError(saved.where(), ": the checkpoint was trained with ", name, ' ', was, ", this loop has ", value);
    }
    if (const auto data = saved.find("data"); data && data->text() != fingerprint()) {
      throw ConfigError(saved.where(), ": the checkpoint was trained on other data (", data->text(),
                        "), this loop has ", fingerprint(),
                        "; give it the former ones, or load the checkpoint's networks alone");
    }
    check_texts(saved);
    check_limit(saved);
  }

  void load(const ValueView& saved) override {
    loader_.seek({.epoch = static_cast<uint32_t>(saved["epoch"].integer()), .step = saved["step"].integer()});
    const auto skipped = saved.find("skipped");
    if (skipped && loader_.skipped() != nullptr) loader_.skipped()->restore(skipped_from_list(*skipped));
  }

 private:
  std::vector<std::pair<std::string, int64_t>> options() const {
    const data::SamplerOptions& options = loader_.sampler().options();
    return {{"lanes", options.lanes},
            {"batch_size", options.batch_size},
            {"dataset_size", options.dataset_size},
            {"seed", static_cast<int64_t>(options.seed)},
            {"shuffle", options.shuffle ? 1 : 0},
            {"drop_last", options.drop_last ? 1 : 0}};
  }

  // What the batches depend on besides, as a checkpoint has it. An empty text: nothing.
  struct Text {
    const char* name;
    const char* what;  // in errors
    std::string text;
  };
  std::vector<Text> texts() const {
    const auto& transform = loader_.transform();
    return {{"transforms", "other transforms of its data", loader_.dataset().transforms()},
            {"batch_transform", "other mixing of batches", transform == nullptr ? "" : transform->text()},
            {"order", "another order of samples", order_text(*loader_.sampler().options().order)}};
  }

  // Orders of one name differ by seeds and weights that their text may not have: their first picks tell them apart.
  static std::string order_text(const data::Order& order) {
    constexpr int64_t kPicks = 64;
    std::string picks;
    for (int64_t i = 0; i < std::min(order.size(), kPicks); ++i) picks += cat(order.at(0, i).index, ' ');
    return cat(order.text(), ", picks ", hex(xxh3(picks)));
  }

  void check_texts(const ValueView& saved) const {
    const auto shown = [](const std::string& text) { return text.empty() ? "none" : cat('"', text, '"'); };
    for (const auto& [name, what, text] : texts()) {
      const auto was = saved.find(name);
      if (!was || was->text() == text) continue;  // older files have none of them
      throw ConfigError(saved.where(), ": the checkpoint was trained with ", what, " (", shown(was->text()),
                        "), this loop has ", shown(text),
                        "; give it the former, or load the checkpoint's networks alone");
    }
  }

  void check_limit(const ValueView& saved) const {
    const auto skipped = saved.find("skipped");
    const int64_t most = loader_.skipped() == nullptr ? 0 : loader_.skipped()->most();
    const int64_t count = skipped ? std::ssize(skipped_from_list(*skipped)) : 0;
    if (count <= most) return;
    throw ConfigError(saved.where(), ": ", count,
                      count == 1 ? " sample that can't be read was" : " samples that can't be read were",
                      " passed over, and this loop's skip_bad is ", most, "; give it ", count, " or more");
  }

  const std::string& fingerprint() {
    if (fingerprint_.empty()) fingerprint_ = loader_.dataset().fingerprint();
    return fingerprint_;
  }

  data::Loader& loader_;
  std::string fingerprint_;  // once: it may read all samples
};

}  // namespace

std::unique_ptr<Part> make_part(data::Loader& loader) { return std::make_unique<LoaderPart>(loader); }

}  // namespace lockstep::loop
