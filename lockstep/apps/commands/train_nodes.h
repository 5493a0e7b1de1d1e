// `lockstep train` on several nodes: `lockstep launch … lockstep-worker train …`, said in one line. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::apps {

// The words of launch that a line of train (without "train") stands for: those of its flags that say which nodes there
// are, --nproc, --max-restarts (left out: 3 at etcd, else 0), then the `worker` with the other words. Without --nproc a
// node has as many ranks as its `cores` and --lanes allow. Nothing for a line without such flags, and for one that asks
// for help. Throws ConfigError for flags of a launcher on one machine, and for nodes that come and go without --lanes,
// whose number every epoch needs.
std::optional<std::vector<std::string>> launch_of_train(const std::vector<std::string>& words, std::string (*worker)(),
                                                        int cores);

// What train --help says of these flags.
extern const char* const kTrainNodesHelp;

}  // namespace lockstep::apps
