#pragma once
#include <kgtorch/atomic.h>
