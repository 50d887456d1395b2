#pragma once
#include <kgtorch/factories.h>
