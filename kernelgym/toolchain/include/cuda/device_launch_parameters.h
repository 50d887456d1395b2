// threadIdx and its like, which CUDA's header of this name declares.
#pragma once
#include "kgemu/core.h"
