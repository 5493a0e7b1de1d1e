// The calls that a pickle asks for, imitated: tensors are rebuilt over storages, containers are passed through.
#pragma once

#include "lockstep/checkpoint/formats/pickle_heap.h"
#include "lockstep/checkpoint/formats/storage_source.h"

namespace lockstep::checkpoint {

// The result of `function(*arguments)`. Throws a Fault unless the function is a Global and the arguments are those that
// Python's picklers write for it. What an unknown function would return, and what needs it, is unknown too.
Item call(Heap& heap, const Item& function, const Item& arguments);

// Gives an object the state that was pickled with it: numpy's arrays and dtypes get theirs. That of a dict (an
// OrderedDict's _metadata) and that of an unknown object are dropped. Throws a Fault for any other object.
void set_state(Heap& heap, const Item& object, const Item& state);

// Loads the storage that a persistent id names: ('storage', class, key, location, elements). It lies on the CPU
// whatever the location says. With `source` nullptr every id is a Fault.
Item load_persistent(Heap& heap, const Item& id, StorageSource* source);

}  // namespace lockstep::checkpoint
