#pragma once
#include <kgtorch/parallel.h>
