// Parts of one call, which threads on the same memory claim one after the other.
//   tl_parts_begin   publish parts 0 to count - 1, in WASM wake the other threads, and claim part 0 for the caller
//   tl_parts_next    return the next part for the caller; NONE_LEFT after all others have computed theirs, or an error
//   tl_parts_finish  take back the parts that nobody has claimed, and wait for the others: returns as tl_parts_next
//   tl_parts_work    for the other threads of a native process, which Python starts: report how the part before has ended,
//                    wait for at most so many spins, and return the next part, or NONE_LEFT
// In WASM the other threads claim in JavaScript (web/kernel-thread.js). What a part is, they say, or Python.
//   layout  `claim` is generation · 2^16 + count · 2^8 + the next part: one word, so that a claim is of the parts that its
//           thread has seen. A thread adds 1 to it by compare-and-exchange, computes the part, and adds 1 to `done`;
//           to `failed` too if the part has ended in a trap, or natively in an exception
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
enum { SPINS = 4000 }; // about 10 µs: what it takes to sleep and to be woken

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

// Claim `taken` parts of those that are left, and return the first; -1 if none is left.
static int claim(parts *p, int all) {
  int32_t seen = read(&p->claim);
  while (next_of(seen) < count_of(seen)) {
    int taken = all ? count_of(seen) - next_of(seen) : 1;
    if (__atomic_compare_exchange_n(&p->claim, &seen, seen + taken, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
      p->own += taken;
      return next_of(seen);
    }
  }
  return NONE_LEFT;
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

EXPORT int tl_parts_work(parts *p, int ended, size_t spins);

enum { NOTHING, COMPUTED, THREW }; // how the part before has ended
// Spins, some microseconds, until the caller has given up the GIL for its own part: who waits for the GIL is put to sleep.
enum { HEAD_START = 150 };

int tl_parts_work(parts *p, int ended, size_t spins) {
  if (ended == THREW) __atomic_fetch_add(&p->failed, 1, __ATOMIC_SEQ_CST);
  if (ended != NOTHING) __atomic_fetch_add(&p->done, 1, __ATOMIC_SEQ_CST);
  for (size_t i = 0; i <= spins; i += wait_a_little(p, 0)) {
    int32_t seen = read(&p->claim);
    if (next_of(seen) < count_of(seen) &&
        __atomic_compare_exchange_n(&p->claim, &seen, seen + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
      for (size_t begun = 0; begun < HEAD_START; begun += wait_a_little(p, 0)) continue;
      return next_of(seen);
    }
  }
  return NONE_LEFT;
}
#endif

static int join(parts *p, size_t limit) {
  int others = count_of(read(&p->claim)) - p->own;
  for (int i = 0; i < SPINS && read(&p->done) != others; i++) continue;
  for (size_t waited = 0; waited < limit;) {
    int32_t done = read(&p->done);
    if (done == others) return read(&p->failed) ? FAILED : NONE_LEFT;
    waited += wait_a_little(p, done);
  }
  return LOST;
}

int tl_parts_next(parts *p, size_t limit) {
  int mine = claim(p, 0);
  return mine == NONE_LEFT ? join(p, limit) : mine;
}

int tl_parts_finish(parts *p, size_t limit) {
  claim(p, 1);
  return join(p, limit);
}
