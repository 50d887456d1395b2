#pragma once
#include <kgtorch/cudnn.h>
