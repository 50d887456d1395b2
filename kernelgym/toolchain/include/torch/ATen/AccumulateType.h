#pragma once
#include <kgtorch/half.h>
