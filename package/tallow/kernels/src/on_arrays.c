// Call a function of this library from Python with arrays as arguments: a builtin function of CPython. By ctypes a call with
// two small arrays takes ten times as long, most of it for the conversion of addresses to objects and back.
//   tl_python         keep what is needed of the interpreter; once, before the first call
//   tl_call_on_arrays the builtin: a METH_FASTCALL function of CPython's stable ABI, whose `self` is a plan
//   plan              a NumPy array of {the function, its pointers and integers, its floats: 0 or 1, the last argument}
//   arguments         for a pointer an array of NumPy, whose first element it points to, None for a null pointer, or an
//                     address; for size_t and ptrdiff_t an int; for float a number
//   threads           the GIL is held: for calls that take less than 0.1 ms
//   errors            TypeError for another number of arguments, and for objects of other types
// An array's first field behind the head of every object is the address of its elements (PyArrayObject_fields of NumPy's
// stable ABI), and the last of the head is the object's type.
#include "calls.h"

typedef struct {
  size_t head; // bytes
  void *none, *array_type, *int_type, *type_error;
  void *(*as_pointer)(void *);             // PyLong_AsVoidPtr
  double (*as_double)(void *);             // PyFloat_AsDouble
  void *(*error)(void);                    // PyErr_Occurred
  void (*set_error)(void *, const char *); // PyErr_SetString
  int (*is_subtype)(void *, void *);       // PyType_IsSubtype
  void (*keep)(void *);                    // Py_IncRef
} interpreter;

static interpreter python;

EXPORT void tl_python(const interpreter *of_process) { python = *of_process; }

static void *field(void *object, size_t offset) { return *(void **)((char *)object + offset); }

static int is_a(void *object, void *type) {
  void *own = field(object, python.head - sizeof(void *));
  return own == type || python.is_subtype(own, type);
}

// Put an argument into a word, or set an error and return 0.
static int convert(void *object, intptr_t *word) {
  *word = 0;
  if (object == python.none) return 1;
  if (is_a(object, python.array_type)) {
    *word = (intptr_t)field(object, python.head);
    return 1;
  }
  if (!is_a(object, python.int_type)) {
    python.set_error(python.type_error, "a C function takes arrays, None and ints");
    return 0;
  }
  *word = (intptr_t)python.as_pointer(object);
  return *word || !python.error();
}

#define I intptr_t
#define TYPES_1 I
#define TYPES_2 TYPES_1, I
#define TYPES_3 TYPES_2, I
#define TYPES_4 TYPES_3, I
#define TYPES_5 TYPES_4, I
#define TYPES_6 TYPES_5, I
#define TYPES_7 TYPES_6, I
#define TYPES_8 TYPES_7, I
#define TYPES_9 TYPES_8, I
#define TYPES_10 TYPES_9, I
#define TYPES_11 TYPES_10, I
#define TYPES_12 TYPES_11, I
#define TYPES_13 TYPES_12, I
#define TYPES_14 TYPES_13, I
#define TYPES_15 TYPES_14, I
#define TYPES_16 TYPES_15, I
#define WORDS_1 w[0]
#define WORDS_2 WORDS_1, w[1]
#define WORDS_3 WORDS_2, w[2]
#define WORDS_4 WORDS_3, w[3]
#define WORDS_5 WORDS_4, w[4]
#define WORDS_6 WORDS_5, w[5]
#define WORDS_7 WORDS_6, w[6]
#define WORDS_8 WORDS_7, w[7]
#define WORDS_9 WORDS_8, w[8]
#define WORDS_10 WORDS_9, w[9]
#define WORDS_11 WORDS_10, w[10]
#define WORDS_12 WORDS_11, w[11]
#define WORDS_13 WORDS_12, w[12]
#define WORDS_14 WORDS_13, w[13]
#define WORDS_15 WORDS_14, w[14]
#define WORDS_16 WORDS_15, w[15]
// WASM calls only with the exact type of the function.
#define WITH(n) \
  case n: \
    if (p->floats) \
      ((void (*)(TYPES_##n, float))p->function)(WORDS_##n, x); \
    else \
      ((void (*)(TYPES_##n))p->function)(WORDS_##n); \
    break;

void call_words(const plan *p, const intptr_t *w, float x) {
  switch (p->words) {
    WITH(1) WITH(2) WITH(3) WITH(4) WITH(5) WITH(6) WITH(7) WITH(8)
    WITH(9) WITH(10) WITH(11) WITH(12) WITH(13) WITH(14) WITH(15) WITH(16)
  }
}

EXPORT void *tl_call_on_arrays(void *self, void *const *arguments, ptrdiff_t count) {
  const plan *p = field(self, python.head);
  if (count != p->words + p->floats) {
    python.set_error(python.type_error, "a C function got another number of arguments than it has");
    return 0;
  }
  intptr_t w[MOST_WORDS];
  for (intptr_t i = 0; i < p->words; i++)
    if (!convert(arguments[i], w + i)) return 0;
  float x = 0.0f;
  if (p->floats) {
    double number = python.as_double(arguments[p->words]);
    if (number == -1.0 && python.error()) return 0;
    x = (float)number;
  }
  call_words(p, w, x);
  python.keep(python.none);
  return python.none;
}
