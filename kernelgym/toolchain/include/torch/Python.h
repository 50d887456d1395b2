// Python's headers where the compiler is shown them, else the part of them that the stand-in uses.
#pragma once
#if __has_include_next(<Python.h>)
#include_next <Python.h>
#else
#include <kgtorch/cpython.h>
#endif
