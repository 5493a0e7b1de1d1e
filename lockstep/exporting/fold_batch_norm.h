// BatchNorm folded into the convolution before it: with s = weight / √(running_var + eps), its filters are multiplied
// by s, and its bias becomes (bias - running_mean) · s + the norm's bias.
#pragma once

#include "lockstep/exporting/trace.h"

namespace lockstep::exporting {

// Folds every BatchNorm that is the only one to use a convolution's output, where nothing else uses the filters. The
// trace gets filters and a bias of its own, the bias under the convolution's name; the network's stay. Returns how many
// were folded.
int fold_batch_norm(Trace& trace);

}  // namespace lockstep::exporting
