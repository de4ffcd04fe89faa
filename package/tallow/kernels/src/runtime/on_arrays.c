// Call a function of this library from Python with arrays as arguments: a builtin function of CPython. By ctypes a call with
// two small arrays takes ten times as long, most of it for the conversion of addresses to objects and back.
//   tl_python         keep what is needed of the interpreter; once, before the first call
//   tl_call_on_arrays the builtin: a METH_FASTCALL function of CPython's stable ABI, whose `self` is a plan
//   tl_call_in_parts  another one, which calls the function for parts of a range, on several threads: see parts.c. Its
//                     first arguments are CONTROL, which is null for one thread, to STEPS. It returns what compute_parts does, or NONE_LEFT
//   plan              a NumPy array of {the function, its pointers and integers, its floats: 0 or 1, the last argument, and
//                     the function's number}
//   arguments         for a pointer an array of NumPy, whose first element it points to, None for a null pointer, or an
//                     address; for size_t and ptrdiff_t an int; for float a number
//   threads           tl_call_on_arrays holds the GIL: for calls that take less than 0.1 ms
//   errors            TypeError for another number of arguments, and for objects of other types
// An array's first field behind the head of every object is the address of its elements (PyArrayObject_fields of NumPy's
// stable ABI), and the last of the head is the object's type.
#include "runtime/calls.h"

typedef struct {
  size_t head; // bytes
  void *none, *array_type, *int_type, *type_error;
  void *(*as_pointer)(void *);             // PyLong_AsVoidPtr
  double (*as_double)(void *);             // PyFloat_AsDouble
  void *(*error)(void);                    // PyErr_Occurred
  void (*set_error)(void *, const char *); // PyErr_SetString
  int (*is_subtype)(void *, void *);       // PyType_IsSubtype
  void (*keep)(void *);                    // Py_IncRef
  void *(*as_int)(long);                   // PyLong_FromLong
  void *(*leave)(void);                    // PyEval_SaveThread: give up the GIL
  void (*enter)(void *);                   // PyEval_RestoreThread
} interpreter;

// A word of part `i`, which is [first, last) of range(LENGTH), is the argument plus these times `first`, LENGTH - `last`, `i`.
typedef struct {
  intptr_t by_first, by_last, by_part;
} step;

// The first arguments: addresses of the control block and of a step for each word, the number of parts, and the limit
// of parts.c. A part has whole groups, of GROUP each; the last one has what is left too.
enum { CONTROL, PARTS, LIMIT, GROUPS, GROUP, LENGTH, STEPS, OWN };

static interpreter python;

EXPORT void tl_python(const interpreter *of_process) { python = *of_process; }

static void *field(void *object, size_t offset) { return *(void **)((char *)object + offset); }

static int is_a(void *object, void *type) {
  void *own = field(object, python.head - sizeof(void *));
  return own == type || python.is_subtype(own, type);
}

// Put an argument into a word, or set an error and return 0.
static __attribute__((noinline)) int convert(void *object, intptr_t *word) {
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

// Put the arguments of a call into words and a float, or set an error and return 0.
static __attribute__((noinline)) int convert_all(const plan *p, void *const *arguments, ptrdiff_t count, intptr_t *w, float *x) {
  if (count != p->words + p->floats) {
    python.set_error(python.type_error, "a C function got another number of arguments than it has");
    return 0;
  }
  for (intptr_t i = 0; i < p->words; i++)
    if (!convert(arguments[i], w + i)) return 0;
  double number = p->floats ? python.as_double(arguments[p->words]) : 0.0;
  *x = (float)number;
  return number != -1.0 || !python.error();
}

EXPORT void *tl_call_on_arrays(void *self, void *const *arguments, ptrdiff_t count) {
  const plan *p = field(self, python.head);
  intptr_t w[MOST_WORDS];
  float x;
  if (!convert_all(p, arguments, count, w, &x)) return 0;
  call_words(p, w, x);
  python.keep(python.none);
  return python.none;
}

// In 64 bits: the product of a number of elements and of parts can exceed a word of 32.
static intptr_t bound(const intptr_t *how, intptr_t i) {
  return i < how[PARTS] ? (intptr_t)((int64_t)how[GROUPS] * i / how[PARTS]) * how[GROUP] : how[LENGTH];
}

EXPORT __attribute__((minsize)) void *tl_call_in_parts(void *self, void *const *arguments, ptrdiff_t count) {
  const plan *p = field(self, python.head);
  intptr_t how[OWN], w[MOST_WORDS], of_part[MOST_WORDS];
  float x;
  if (!convert_all(p, arguments + OWN, count - OWN, w, &x)) return 0;
  for (int i = 0; i < OWN; i++)
    if (!convert(arguments[i], how + i)) return 0;
  parts *control = (parts *)how[CONTROL];
  const step *steps = (const step *)how[STEPS];
  int end = -1;
  void *thread = python.leave();
  for (intptr_t i = 0; i < how[PARTS]; i++) {
    intptr_t first = bound(how, i), after = how[LENGTH] - bound(how, i + 1);
    for (intptr_t j = 0; j < p->words; j++) // an address above 2 GiB is negative, and sums may wrap
      of_part[j] = (intptr_t)((uintptr_t)w[j] + (uintptr_t)steps[j].by_first * (uintptr_t)first +
                              (uintptr_t)steps[j].by_last * (uintptr_t)after + (uintptr_t)steps[j].by_part * (uintptr_t)i);
    if (control)
      set_part(control, i, p, of_part, x);
    else
      call_words(p, of_part, x);
  }
  if (control) end = compute_parts(control, (size_t)how[PARTS], (size_t)how[LIMIT]);
  python.enter(thread);
  return python.as_int(end);
}
