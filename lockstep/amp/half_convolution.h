// Convolutions of fp16 on CPUs that multiply it slowly.
#pragma once

namespace lockstep::amp {

// From now on, in this process, convolutions of fp16 tensors on the CPU whose kernel would be oneDNN's reference (the
// backward pass without AMX-FP16, up to 600 times slower than fp32's; the forward pass without AVX512-FP16) are
// computed in fp32, and what they return is rounded to fp16. AutocastScope and cast_model() call it. Any thread.
void widen_slow_half_convolutions();

}  // namespace lockstep::amp
