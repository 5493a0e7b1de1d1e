// numpy's arrays, scalars and dtypes as its pickles describe them: read as data, without numpy.
//
// An array is `_reconstruct(ndarray, (0,), b'b')`, then a state (version, shape, dtype, is_fortran, bytes); at protocol
// 5
// `_frombuffer(bytes, dtype, shape, order)`. A scalar is `scalar(dtype, bytes)`. A dtype is `dtype('f4', False, True)`,
// then a state (version, byte order, …).
#pragma once

#include "lockstep/checkpoint/formats/call_arguments.h"
#include "lockstep/checkpoint/formats/pickle_heap.h"

namespace lockstep::checkpoint {

// Each throws a Fault for what no tensor or number holds: objects, texts, dates, numbers in big-endian order.
Item make_numpy_dtype(Heap& heap, const CallArguments& arguments);
Item make_numpy_array(Heap& heap, const CallArguments& arguments);  // of _reconstruct
Item make_numpy_array_from_buffer(Heap& heap, const CallArguments& arguments);
Item make_numpy_scalar(Heap& heap, const CallArguments& arguments);
void set_numpy_state(Heap& heap, const NumpyDtypeRef& dtype, const Item& state);
void set_numpy_state(Heap& heap, const NumpyArrayRef& array, const Item& state);

}  // namespace lockstep::checkpoint
