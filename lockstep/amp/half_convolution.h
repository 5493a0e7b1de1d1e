// fp16 convolutions on CPUs that multiply fp16 slowly.
#pragma once

namespace lockstep::amp {

// Makes fp16 convolutions on the CPU compute in fp32 and round their results to fp16, from now on in this process,
// wherever their kernel would be oneDNN's reference. That is the backward pass without AMX-FP16 (up to 600 times slower
// than fp32's) and the forward pass without AVX512-FP16. AutocastScope and cast_model() call it. Any thread.
void widen_slow_half_convolutions();

}  // namespace lockstep::amp
