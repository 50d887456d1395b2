#pragma once
#include <kgtorch/cublas.h>
