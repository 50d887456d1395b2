#pragma once
#include <kgtorch/cuda.h>
