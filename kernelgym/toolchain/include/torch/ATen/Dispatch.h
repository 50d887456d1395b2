#pragma once
#include <kgtorch/dispatch.h>
