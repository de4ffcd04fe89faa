// Stages of a computation that several threads do together, for the fused decoder blocks.
//
// Stages with an odd number are divided into chunks, of which each computes some columns of a product, or some heads;
// the others are short. A thread claims a chunk of the present stage, and whoever finishes the last chunk begins the next
// stage. So threads need not be woken for each stage, and one that comes late, or never, holds up nobody.

#ifndef TALLOW_STAGES_H
#define TALLOW_STAGES_H

#include "runtime/kernels.h"

typedef struct {
  size_t chunks;      // of a divided stage: 1 ≤ chunks ≤ 255
  int (*yield)(void); // let the operating system run another thread; null in WASM
  const int32_t *failed; // nonzero once another thread has ended early; null if there is no such number
  uint32_t claim;     // number of the stage · 2^8 + the next chunk; 0 before the call
  uint32_t done;      // chunks of the stage; 0 before the call
  uint32_t sleepers, may_wait; // threads that wait for `claim`, in WASM; 0 before the call, and where they must not
} stages;

// One chunk of a stage: columns first / parts to last / parts of each product, rounded to whole groups of columns.
typedef struct {
  size_t first, last, parts, rows;
  const unsigned char *rounded; // the rows of x, for blocks
  float *scratch;               // of this thread
} part;

typedef void stage_runner(const void *blocks, const void *call, uint32_t stage, part p);

enum { SPINS = 2000, LIMIT_S = 60 };

// Wait for another value of `claim`; return the seconds slept. `spins` counts the calls since the last one.
static inline int await(stages *s, uint32_t seen, int spins) {
  if (s->failed && __atomic_load_n(s->failed, __ATOMIC_SEQ_CST)) return LIMIT_S;
#if defined __wasm__
  if (spins < 10 * SPINS || !s->may_wait) return 0;
  __atomic_fetch_add(&s->sleepers, 1, __ATOMIC_SEQ_CST);
  int slept = __builtin_wasm_memory_atomic_wait32((int *)&s->claim, (int)seen, 1000000000) == 2;
  __atomic_fetch_sub(&s->sleepers, 1, __ATOMIC_SEQ_CST);
  return slept;
#else
  (void)seen;
  if (spins >= SPINS && s->yield) s->yield();
#if defined __x86_64__
  __builtin_ia32_pause();
#endif
  return 0;
#endif
}

static inline void begin_stage(stages *s, uint32_t number) {
  __atomic_store_n(&s->done, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&s->claim, number << 8, __ATOMIC_SEQ_CST);
#if defined __wasm__
  if (__atomic_load_n(&s->sleepers, __ATOMIC_SEQ_CST)) __builtin_wasm_memory_atomic_notify((int *)&s->claim, 255);
#endif
}

// Take part in the stages 0 to end - 1. Returns when all are done; or when another thread has failed, or has not finished
// its chunk within a minute (in WASM): then claim >> 8 is not `end`.
static inline __attribute__((always_inline)) void run_stages(stages *s, uint32_t end, stage_runner *run, const void *blocks,
                                                             const void *call, float *scratch) {
  for (int spins = 0, slept = 0; slept < LIMIT_S;) {
    uint32_t seen = __atomic_load_n(&s->claim, __ATOMIC_SEQ_CST), number = seen >> 8, chunk = seen & 255;
    uint32_t chunks = number % 2 ? (uint32_t)s->chunks : 1;
    if (number == end) return;
    if (chunk == chunks) {
      slept += await(s, seen, spins++);
    } else if (__atomic_compare_exchange_n(&s->claim, &seen, seen + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
      run(blocks, call, number, (part){chunk, chunk + 1, chunks, 0, 0, scratch});
      if (__atomic_add_fetch(&s->done, 1, __ATOMIC_SEQ_CST) == chunks) begin_stage(s, number + 1);
      spins = slept = 0;
    }
  }
}

enum { UNPACKED_ROWS = 4 }; // more rows are converted to panels for matrices of floats

static inline size_t first_of(size_t n, const part *p) { return n * p->first / p->parts; }
static inline size_t last_of(size_t n, const part *p) { return n * p->last / p->parts; }

// The columns of a chunk. Interleaved blocks are divided between groups only.
static inline size_t column_of(size_t n, size_t chunk, const part *p) {
  return chunk == p->parts ? n : n * chunk / p->parts / COLUMNS * COLUMNS;
}
static inline size_t first_column(size_t n, const part *p) { return column_of(n, p->first, p); }
static inline size_t last_column(size_t n, const part *p) { return column_of(n, p->last, p); }

static inline size_t bytes_of(int32_t format, size_t k) { // of a row of a matrix
  static const unsigned char unit[] = {4, 2, 2, 34, 18, 22, 144, 176, 210, 20, 24, 84, 110};
  // A block of 32 weights has at most 34 bytes, one of 256 at least 84.
  size_t bytes = unit[format % INTERLEAVED];
  return format <= BFLOAT16 ? k * bytes : k / (bytes <= 34 ? 32 : 256) * bytes;
}

// Columns of y (rows, n) = x (rows, k) @ wᵀ + bias; for blocks x is p->rounded. The scratch of a thread holds
// tl_linear_panels_scratch(rows, k, FLOAT16) floats.
static inline void times(float *y, const float *x, affine w, size_t k, size_t n, const part *p) {
  size_t first = first_column(n, p), columns = last_column(n, p) - first, m = p->rows;
  const unsigned char *weight = (const unsigned char *)w.weight + first * bytes_of(w.format, k);
  const float *bias = w.bias ? w.bias + first : 0;
  y += first;
  if (w.format > BFLOAT16)
    product_of(w.format)(y, p->rounded, weight, bias, m, k, columns, n);
  else if (m > UNPACKED_ROWS)
    tl_linear_panels(y, x, weight, bias, m, k, columns, (ptrdiff_t)k, n, w.format, p->scratch);
  else
    linear_of_floats(y, x, weight, bias, w.format, m, k, columns, n);
}

// Add the same columns of y to x.
static inline void add(float *x, const float *y, size_t n, const part *p) {
  size_t first = first_column(n, p), last = last_column(n, p);
  for (size_t r = 0; r < p->rows; r++)
    for (size_t i = r * n + first; i < r * n + last; i++) x[i] += y[i];
}

#endif
