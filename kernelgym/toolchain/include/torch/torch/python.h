#pragma once
#include <kgtorch/compute_functions.h>
#include <kgtorch/dispatch.h>
#include <kgtorch/library.h>
