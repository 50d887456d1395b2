// The part of CPython's stable ABI (3.10 and later, with the GIL) that the stand-in calls, declared
// by hand: the headers of Python are often not installed, and take as long to parse as all the rest.
// Nothing here clashes with Python.h, which may be included before or after.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include <stddef.h>
#include <sys/types.h>
// What Python.h includes and sources have come to count on.
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef Py_PYTHON_H
typedef struct _object PyObject;
typedef struct _typeobject PyTypeObject;
typedef ssize_t Py_ssize_t;
struct PyMethodDef;
struct PyModuleDef;

extern "C" {
extern PyObject _Py_NoneStruct;
extern struct _longobject _Py_TrueStruct, _Py_FalseStruct;
extern PyObject* PyExc_IndexError;
extern PyObject* PyExc_MemoryError;
extern PyObject* PyExc_NotImplementedError;
extern PyObject* PyExc_RuntimeError;
extern PyObject* PyExc_TypeError;
extern PyObject* PyExc_UserWarning;
extern PyObject* PyExc_ValueError;

int Py_IsInitialized();
void Py_IncRef(PyObject*);
void Py_DecRef(PyObject*);
PyObject* Py_BuildValue(const char*, ...);

PyObject* PyObject_Call(PyObject*, PyObject*, PyObject*);
PyObject* PyObject_GetAttrString(PyObject*, const char*);
int PyObject_SetAttrString(PyObject*, const char*, PyObject*);
PyObject* PyObject_GetItem(PyObject*, PyObject*);
int PyObject_IsTrue(PyObject*);
PyObject* PyObject_Repr(PyObject*);
PyObject* PyObject_Str(PyObject*);
unsigned long PyType_GetFlags(PyTypeObject*);
int PyType_IsSubtype(PyTypeObject*, PyTypeObject*);

PyObject* PyBool_FromLong(long);
PyObject* PyFloat_FromDouble(double);
double PyFloat_AsDouble(PyObject*);
extern PyTypeObject PyFloat_Type;
PyObject* PyLong_FromLongLong(long long);
PyObject* PyLong_FromUnsignedLongLong(unsigned long long);
long long PyLong_AsLongLong(PyObject*);
unsigned long long PyLong_AsUnsignedLongLong(PyObject*);
size_t PyLong_AsSize_t(PyObject*);
void* PyLong_AsVoidPtr(PyObject*);
int PyIndex_Check(PyObject*);
int PyNumber_Check(PyObject*);
PyObject* PyNumber_Index(PyObject*);

PyObject* PyUnicode_FromString(const char*);
PyObject* PyUnicode_FromStringAndSize(const char*, Py_ssize_t);
const char* PyUnicode_AsUTF8AndSize(PyObject*, Py_ssize_t*);
int PyUnicode_CompareWithASCIIString(PyObject*, const char*);

PyObject* PyList_New(Py_ssize_t);
int PyList_Append(PyObject*, PyObject*);
int PyList_SetItem(PyObject*, Py_ssize_t, PyObject*);
Py_ssize_t PyList_Size(PyObject*);
PyObject* PyTuple_New(Py_ssize_t);
PyObject* PyTuple_GetItem(PyObject*, Py_ssize_t);
int PyTuple_SetItem(PyObject*, Py_ssize_t, PyObject*);
Py_ssize_t PyTuple_Size(PyObject*);
int PySequence_Check(PyObject*);
Py_ssize_t PySequence_Size(PyObject*);
PyObject* PySequence_GetItem(PyObject*, Py_ssize_t);
PyObject* PySequence_Tuple(PyObject*);
PyObject* PyDict_New();
PyObject* PyDict_GetItemString(PyObject*, const char*);
int PyDict_SetItemString(PyObject*, const char*, PyObject*);
Py_ssize_t PyDict_Size(PyObject*);

void PyErr_Clear();
PyObject* PyErr_Occurred();
void PyErr_SetString(PyObject*, const char*);
int PyErr_WarnEx(PyObject*, const char*, Py_ssize_t);
void PyErr_Fetch(PyObject**, PyObject**, PyObject**);
void PyErr_NormalizeException(PyObject**, PyObject**, PyObject**);
void PyErr_Restore(PyObject*, PyObject*, PyObject*);
void PySys_FormatStderr(const char*, ...);

typedef void (*PyCapsule_Destructor)(PyObject*);
extern PyTypeObject PyCapsule_Type;
PyObject* PyCapsule_New(void*, const char*, PyCapsule_Destructor);
const char* PyCapsule_GetName(PyObject*);
void* PyCapsule_GetPointer(PyObject*, const char*);
int PyCapsule_IsValid(PyObject*, const char*);

typedef PyObject* (*PyCFunction)(PyObject*, PyObject*);
PyObject* PyCFunction_NewEx(PyMethodDef*, PyObject*, PyObject*);
PyObject* PyCFunction_GetSelf(PyObject*);
PyObject* PyImport_ImportModule(const char*);
PyObject* PyModule_Create2(PyModuleDef*, int);
}
#endif

namespace kgtorch {

// PyMethodDef and PyModuleDef under names of our own, since a struct can be defined only once.
struct MethodDef {
  using Function = PyObject* (*)(PyObject* self, PyObject* const* args, Py_ssize_t count,
                                 PyObject* names);
  static constexpr int kFastCall = 0x0080, kKeywords = 0x0002;

  const char* name = nullptr;
  Function function = nullptr;
  int flags = kFastCall | kKeywords;
  const char* doc = nullptr;

  PyMethodDef* get() { return reinterpret_cast<PyMethodDef*>(this); }
};

struct ModuleDef {
  Py_ssize_t references = 1;
  PyTypeObject* type = nullptr;
  PyObject* (*initialise)() = nullptr;
  Py_ssize_t index = 0;
  PyObject* copy = nullptr;
  const char* name = nullptr;
  const char* doc = nullptr;
  Py_ssize_t state_size = -1;
  PyMethodDef* methods = nullptr;
  void* slots = nullptr;
  void* traverse = nullptr;
  void* clear = nullptr;
  void* free = nullptr;

  explicit ModuleDef(const char* module) : name(module) {}
  // A new module, or null with a Python error set.
  PyObject* create() {
    constexpr int kStableAbi = 3;
    return PyModule_Create2(reinterpret_cast<PyModuleDef*>(this), kStableAbi);
  }
};

// The GIL of a thread that may hold it already. Under names of our own: Python.h has an enum here.
extern "C" int kgtorch_gil_ensure() __asm__("PyGILState_Ensure");
extern "C" void kgtorch_gil_release(int state) __asm__("PyGILState_Release");

inline PyObject* none() { return &_Py_NoneStruct; }
inline bool is_true(PyObject* object) {
  return object == reinterpret_cast<PyObject*>(&_Py_TrueStruct);
}
inline bool is_bool(PyObject* object) {
  return is_true(object) || object == reinterpret_cast<PyObject*>(&_Py_FalseStruct);
}

// As Py_TYPE has it: an object starts with its reference count and its type.
inline PyTypeObject* type_of(PyObject* object) {
  return reinterpret_cast<PyTypeObject* const*>(object)[1];
}
inline bool is_instance(PyObject* object, PyTypeObject* type) {
  return type_of(object) == type || PyType_IsSubtype(type_of(object), type);
}

// Bits of a type's flags that say what it derives from.
inline constexpr int kIntFlag = 24, kListFlag = 25, kTupleFlag = 26, kBytesFlag = 27, kStrFlag = 28,
                     kDictFlag = 29;
inline bool has_flag(PyObject* object, int bit) {
  return (PyType_GetFlags(type_of(object)) >> bit & 1) != 0;
}
inline bool is_int(PyObject* object) { return has_flag(object, kIntFlag); }
inline bool is_list(PyObject* object) { return has_flag(object, kListFlag); }
inline bool is_tuple(PyObject* object) { return has_flag(object, kTupleFlag); }
inline bool is_bytes(PyObject* object) { return has_flag(object, kBytesFlag); }
inline bool is_str(PyObject* object) { return has_flag(object, kStrFlag); }
inline bool is_dict(PyObject* object) { return has_flag(object, kDictFlag); }
inline bool is_float(PyObject* object) { return is_instance(object, &PyFloat_Type); }

// UTF-8 of a str, kept by it; null with a Python error set where there is none.
inline const char* utf8(PyObject* text) { return PyUnicode_AsUTF8AndSize(text, nullptr); }

}  // namespace kgtorch
