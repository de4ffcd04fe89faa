// Parts of one call, which threads on the same memory claim one after the other.
//   tl_parts_begin   publish parts 0 to count - 1, in WASM wake the other threads, and claim part 0 for the caller
//   tl_parts_next    return the next part for the caller; NONE_LEFT after all others have computed theirs, or an error
//   tl_parts_finish  take back the parts that nobody has claimed, and wait for the others: returns as tl_parts_next
//   tl_parts_work    for the other threads of a native process, which Python starts: report how the part before has ended,
//                    and return whether there are parts, after at most `spins` spins; if there are, `head_start` spins later
//   tl_parts_claim   for them too: return the next part, or NONE_LEFT
// In WASM the other threads claim in JavaScript (web/kernel-thread.js). What a part is, they say, or Python.
//   layout  `claim` is generation · 2^16 + count · 2^8 + the next part: one word, so that a claim is of the parts that its
//           thread has seen. A thread adds 1 to it by compare-and-exchange, computes the part, and adds 1 to `done`;
//           to `failed` too if the part has ended in a trap, or natively in an exception. If the browser ends a thread, its
//           supervisor adds both
//   length  count ≤ 255. Limit: in WASM milliseconds, after which a part of another thread counts as lost; natively spins,
//           after which the result is LOST too, and the caller may call again
//   threads the caller is one; a part that nobody claims is the caller's, so that it waits for no thread that has not begun
#include "vec.h"

typedef struct {
  int32_t claim, done, failed;
  int32_t own;      // parts that the caller has claimed
  int32_t may_wait; // in WASM: 0 where the engine forbids to wait, on the main thread of a page
} parts;

enum { NONE_LEFT = -1, FAILED = -2, LOST = -3 };
#if defined __wasm__
enum { SPINS = 4000 }; // about 10 µs: what it takes to sleep and to be woken
#endif

EXPORT int tl_parts_begin(parts *p, size_t count);
EXPORT int tl_parts_next(parts *p, size_t limit);
EXPORT int tl_parts_finish(parts *p, size_t limit);

static int32_t read(int32_t *word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }

static int count_of(int32_t claim) { return claim >> 8 & 255; }
static int next_of(int32_t claim) { return claim & 255; }

int tl_parts_begin(parts *p, size_t count) {
  __atomic_store_n(&p->done, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&p->failed, 0, __ATOMIC_SEQ_CST);
  p->own = 1;
  uint32_t generation = ((uint32_t)read(&p->claim) >> 16) + 1;
  __atomic_store_n(&p->claim, (int32_t)(generation << 16 | (uint32_t)count << 8 | 1), __ATOMIC_SEQ_CST);
#if defined __wasm__
  __builtin_wasm_memory_atomic_notify(&p->claim, (uint32_t)count - 1);
#endif
  return 0;
}

// Claim one part, or all that are left, and return the first; NONE_LEFT if none is. Put the number of parts into `taken`.
static int claim(parts *p, int all, int *taken) {
  int32_t seen = read(&p->claim);
  while (next_of(seen) < count_of(seen)) {
    *taken = all ? count_of(seen) - next_of(seen) : 1;
    if (__atomic_compare_exchange_n(&p->claim, &seen, seen + *taken, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return next_of(seen);
  }
  *taken = 0;
  return NONE_LEFT;
}

static int claim_own(parts *p, int all) {
  int taken, first = claim(p, all, &taken);
  p->own += taken;
  return first;
}

#if defined __wasm__
// Wait for at most a second, and return the milliseconds.
static size_t wait_a_little(parts *p, int32_t done) {
  if (p->may_wait) return __builtin_wasm_memory_atomic_wait32(&p->done, done, 1000000000) == 2 ? 1000 : 0;
  for (int i = 0; i < 100 * SPINS; i++)
    if (read(&p->done) != done) return 0;
  return 1;
}
#else
// Spin once, and return 1.
static size_t wait_a_little(parts *p, int32_t done) {
  (void)p, (void)done;
#if defined __x86_64__
  __builtin_ia32_pause();
#endif
  return 1;
}

EXPORT int tl_parts_work(parts *p, int ended, size_t spins, size_t head_start);
EXPORT int tl_parts_claim(parts *p);

enum { NOTHING, COMPUTED, THREW }; // how the part before has ended

static int has_parts(parts *p) {
  int32_t seen = read(&p->claim);
  return next_of(seen) < count_of(seen);
}

int tl_parts_work(parts *p, int ended, size_t spins, size_t head_start) {
  if (ended == THREW) __atomic_fetch_add(&p->failed, 1, __ATOMIC_SEQ_CST);
  if (ended != NOTHING) __atomic_fetch_add(&p->done, 1, __ATOMIC_SEQ_CST);
  for (size_t i = 0; i < spins && !has_parts(p); i += wait_a_little(p, 0)) continue;
  if (!has_parts(p)) return 0;
  for (size_t i = 0; i < head_start; i += wait_a_little(p, 0)) continue;
  return 1;
}

int tl_parts_claim(parts *p) {
  int taken;
  return claim(p, 0, &taken);
}
#endif

static int join(parts *p, size_t limit) {
  int others = count_of(read(&p->claim)) - p->own;
#if defined __wasm__
  for (int i = 0; i < SPINS && read(&p->done) != others; i++) continue;
#endif
  for (size_t waited = 0;;) {
    int32_t done = read(&p->done);
    if (done == others) return read(&p->failed) ? FAILED : NONE_LEFT;
    if (waited >= limit) return LOST;
    waited += wait_a_little(p, done);
  }
}

int tl_parts_next(parts *p, size_t limit) {
  int mine = claim_own(p, 0);
  return mine == NONE_LEFT ? join(p, limit) : mine;
}

int tl_parts_finish(parts *p, size_t limit) {
  claim_own(p, 1);
  return join(p, limit);
}
