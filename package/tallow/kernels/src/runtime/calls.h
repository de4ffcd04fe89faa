// Calls of functions of this library whose arguments are words, pointers and integers, and then at most one float.

#ifndef TALLOW_CALLS_H
#define TALLOW_CALLS_H

#include "runtime/vec.h"

enum { MOST_WORDS = 16 };

typedef struct {
  void *function;
  intptr_t words, floats; // the number of each
  intptr_t number;        // of the function, by which other threads of the tab know it
} plan;

// In on_arrays.c.
void call_words(const plan *p, const intptr_t *words, float x);

// In parts.c.
typedef struct parts parts;
void set_part(parts *p, intptr_t i, const plan *own, const intptr_t *words, float x);
int compute_parts(parts *p, size_t count, size_t limit);

#endif
