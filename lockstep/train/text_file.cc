#include "lockstep/train/text_file.h"

#include "lockstep/checkpoint/formats/atomic_file.h"

namespace lockstep::train {

void write_text(const std::string& path, const std::string& text) {
  checkpoint::write_atomically(path, [&](checkpoint::ByteSink& sink) { sink.write(text); });
}

}  // namespace lockstep::train
