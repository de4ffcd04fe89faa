// Calls of functions of this library whose arguments are words, pointers and integers, and then at most one float.

#ifndef TALLOW_CALLS_H
#define TALLOW_CALLS_H

#include "vec.h"

enum { MOST_WORDS = 16 };

typedef struct {
  void *function;
  intptr_t words, floats; // the number of each
} plan;

// In on_arrays.c.
void call_words(const plan *p, const intptr_t *words, float x);

#endif
