#pragma once
#include <kgtorch/macros.h>
