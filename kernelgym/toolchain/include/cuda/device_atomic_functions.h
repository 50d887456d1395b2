// Part of cuda_runtime.h, under the name that older programs include.
#pragma once
#include "cuda_runtime.h"
