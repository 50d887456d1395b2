// The CUDA language and runtime for g++: include/cuda on the include path takes nvcc's place.
#pragma once

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "kgemu/integer.h"
#include "kgemu/math.h"
#include "kgemu/memory.h"
#include "kgemu/qualifiers.h"
#include "kgemu/warp.h"
#include "math_constants.h"
#include "vector_types.h"
