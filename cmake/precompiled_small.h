// The precompiled header of targets that are compiled for their size.
#pragma once
#include "precompiled_plain.h"
