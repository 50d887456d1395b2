#pragma once
#include <kgtorch/binding.h>
