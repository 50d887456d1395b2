#pragma once
#include <kgtorch/error.h>
