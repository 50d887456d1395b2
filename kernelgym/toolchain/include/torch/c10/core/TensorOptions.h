#pragma once
#include <kgtorch/options.h>
