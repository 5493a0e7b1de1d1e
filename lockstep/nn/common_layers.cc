#include "lockstep/nn/common_layers.h"

namespace torch::nn {
LOCKSTEP_COMMON_LAYERS()
}
