// Function and variable qualifiers.
#pragma once
#include "kgemu/qualifiers.h"
