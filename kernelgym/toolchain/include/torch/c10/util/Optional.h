#pragma once
#include <kgtorch/array_ref.h>
