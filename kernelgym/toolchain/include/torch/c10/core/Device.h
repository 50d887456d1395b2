#pragma once
#include <kgtorch/scalar_type.h>
