// Parts of one call, which threads on the same memory claim one after the other.
//   compute_parts    publish calls of C functions as parts 0 to count - 1, compute those that no other thread claims, and
//                    wait for the others. Return NONE_LEFT, or an error
// Natively a part is such a call, or what only Python can compute:
//   tl_parts_begin   publish parts 0 to count - 1, wake other threads, and claim part 0 for the caller
//   tl_parts_next    return the next part for the caller; NONE_LEFT after all others have computed theirs, or an error
//   tl_parts_finish  take back the parts that nobody has claimed, and wait for the others: returns as tl_parts_next
//   tl_parts_work    compute `calls` in one of the other threads, which Python starts; sleep after `spins` spins without any.
//                    Report first how the thread's part before has ended. Return 1 `head_start` spins after parts that only
//                    Python can compute have been published, or 0 if the thread is to end
//   tl_parts_claim   return the next part for such a thread that only Python can compute, or NONE_LEFT
//   tl_parts_end     let the threads end
// In WASM the other threads claim in JavaScript (web/kernel-thread.js), which says what a part is: float64 numbers.
//   layout  `claim` is generation · 2^16 + count · 2^8 + the next part: one word, so that a claim is of the parts that its
//           thread has seen. A thread adds 1 to it by compare-and-exchange, computes the part, and adds 1 to `done`;
//           to `failed` too if the part has ended in a trap, or natively in an exception. If the browser ends a thread, its
//           supervisor adds both
//   length  count ≤ 255. Limit: in WASM milliseconds, after which a part of another thread counts as lost; natively spins,
//           after which the result is LOST too, and the caller may call again
//   threads the caller is one; a part that nobody claims is the caller's, so that it waits for no thread that has not begun
#include "runtime/calls.h"

#if !defined __wasm__
typedef struct {
  plan plan;
  intptr_t words[MOST_WORDS];
  float x;
} part;

typedef struct {
  void *alarm; // a lock of Python, which is held until the thread is woken
  int32_t asleep;
} sleeper;
#endif

struct parts {
  int32_t claim, done, failed;
  int32_t own;      // parts that the caller has claimed
  int32_t may_wait; // in WASM: 0 where the engine forbids to wait, on the main thread of a page
#if !defined __wasm__
  int32_t is_over;             // the threads are to end
  int32_t has_calls;           // 0 if only Python can compute the parts
  part *calls;                 // memory for them
  sleeper *sleepers;           // of the other threads
  intptr_t threads;            // their number
  int (*acquire)(void *, int); // PyThread_acquire_lock, which needs no GIL
  void (*release)(void *);     // PyThread_release_lock
  int (*yield)(void);          // sched_yield: another thread may wait for this processor
#endif
};

enum { NONE_LEFT = -1, FAILED = -2, LOST = -3 };
#if defined __wasm__
enum { SPINS = 4000 }; // about 80 µs: to sleep and to be woken takes 20 to 100 µs
#else
enum { SPINS = 400 }; // 6 to 18 µs: long beside what it takes to yield
#endif

static void pause(void) {
#if defined __wasm__
  __atomic_thread_fence(__ATOMIC_SEQ_CST); // 20 ns; without it a look takes 0.3 to 3 ns
#elif defined __x86_64__
  __builtin_ia32_pause();
#endif
}

static int32_t read(int32_t *word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }

static void write(int32_t *word, int32_t value) { __atomic_store_n(word, value, __ATOMIC_SEQ_CST); }

static int exchange(int32_t *word, int32_t *seen, int32_t next) {
  return __atomic_compare_exchange_n(word, seen, next, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static int count_of(int32_t claim) { return claim >> 8 & 255; }
static int next_of(int32_t claim) { return claim & 255; }

#if !defined __wasm__
// Wake a thread, if it sleeps.
static void ring(const parts *p, sleeper *thread) {
  int32_t asleep = 1;
  if (exchange(&thread->asleep, &asleep, 0)) p->release(thread->alarm);
}
#endif

static __attribute__((noinline)) void begin(parts *p, size_t count) {
  write(&p->done, 0);
  write(&p->failed, 0);
  p->own = 1;
  uint32_t generation = ((uint32_t)read(&p->claim) >> 16) + 1;
  write(&p->claim, (int32_t)(generation << 16 | (uint32_t)count << 8 | 1));
#if defined __wasm__
  __builtin_wasm_memory_atomic_notify(&p->claim, (uint32_t)count - 1);
#else
  for (intptr_t i = 0; i < p->threads && i < (intptr_t)count - 1; i++) ring(p, p->sleepers + i);
#endif
}

// Claim one part, or all that are left, and return the first; NONE_LEFT if none is. Put the number of parts into `taken`.
static __attribute__((noinline)) int claim(parts *p, int all, int *taken) {
  int32_t seen = read(&p->claim);
  while (next_of(seen) < count_of(seen)) {
    *taken = all ? count_of(seen) - next_of(seen) : 1;
    if (exchange(&p->claim, &seen, seen + *taken)) return next_of(seen);
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
// Wait for at most a second while a word is as seen, and return the milliseconds.
static size_t wait_a_little(parts *p, int32_t *word, int32_t seen) {
  if (p->may_wait) return __builtin_wasm_memory_atomic_wait32(word, seen, 1000000000) == 2 ? 1000 : 0;
  for (int i = 0; i < 12 * SPINS; i++, pause())
    if (read(word) != seen) return 0;
  return 1;
}
#else
// Spin while a word is as seen, then let a thread run that waits for this processor. Return the number of spins.
static __attribute__((noinline)) size_t wait_a_little(parts *p, int32_t *word, int32_t seen) {
  for (size_t i = 0; i < SPINS; i++, pause())
    if (read(word) != seen) return i;
  p->yield();
  return SPINS;
}

EXPORT int tl_parts_begin(parts *p, size_t count);
EXPORT int tl_parts_next(parts *p, size_t limit);
EXPORT int tl_parts_finish(parts *p, size_t limit);
EXPORT int tl_parts_work(parts *p, size_t thread, int ended, size_t spins, size_t head_start);
EXPORT int tl_parts_claim(parts *p);
EXPORT int tl_parts_end(parts *p);

enum { NOTHING, COMPUTED, THREW }; // how the part before has ended

static __attribute__((minsize)) void compute(parts *p, int i) {
  const part *one = p->calls + i;
  call_words(&one->plan, one->words, one->x);
}

static void sleep(parts *p, sleeper *own) {
  int32_t asleep = 1;
  write(&own->asleep, asleep);
  int32_t seen = read(&p->claim);
  int has_news = next_of(seen) < count_of(seen) || read(&p->is_over);
  if (!has_news || !exchange(&own->asleep, &asleep, 0)) p->acquire(own->alarm, 1);
}

int tl_parts_work(parts *p, size_t thread, int ended, size_t spins, size_t head_start) {
  if (ended == THREW) __atomic_fetch_add(&p->failed, 1, __ATOMIC_SEQ_CST);
  if (ended != NOTHING) __atomic_fetch_add(&p->done, 1, __ATOMIC_SEQ_CST);
  for (size_t spun = 0;;) {
    int32_t seen = read(&p->claim);
    if (read(&p->is_over)) return 0;
    if (next_of(seen) == count_of(seen)) {
      if (spun < spins) {
        spun += wait_a_little(p, &p->claim, seen);
      } else {
        sleep(p, p->sleepers + thread);
        spun = 0;
      }
      continue;
    }
    if (!read(&p->has_calls)) break;
    // These are the calls of that part if it can still be claimed: they change only after all have been claimed.
    if (!exchange(&p->claim, &seen, seen + 1)) continue;
    compute(p, next_of(seen));
    __atomic_fetch_add(&p->done, 1, __ATOMIC_SEQ_CST);
    spun = 0;
  }
  for (size_t i = 0; i < head_start; i++) pause();
  return 1;
}

int tl_parts_claim(parts *p) {
  int32_t seen = read(&p->claim);
  // Not a call of C that has been published since the thread was told to claim. `has_calls` changes as the calls do.
  while (next_of(seen) < count_of(seen) && !read(&p->has_calls))
    if (exchange(&p->claim, &seen, seen + 1)) return next_of(seen);
  return NONE_LEFT;
}

int tl_parts_end(parts *p) {
  write(&p->is_over, 1);
  for (intptr_t i = 0; i < p->threads; i++) ring(p, p->sleepers + i);
  return 0;
}
#endif

static __attribute__((noinline)) int join(parts *p, size_t limit) {
  int others = count_of(read(&p->claim)) - p->own;
#if defined __wasm__
  for (int i = 0; i < SPINS && read(&p->done) != others; i++) pause();
#endif
  for (size_t waited = 0;;) {
    int32_t done = read(&p->done);
    if (done == others) return read(&p->failed) ? FAILED : NONE_LEFT;
    if (waited >= limit) return LOST;
    waited += wait_a_little(p, &p->done, done);
  }
}

// Return the next part for the caller, or what join does.
static __attribute__((noinline)) int next(parts *p, size_t limit) {
  int mine = claim_own(p, 0);
  return mine == NONE_LEFT ? join(p, limit) : mine;
}

#if !defined __wasm__
int tl_parts_begin(parts *p, size_t count) {
  write(&p->has_calls, 0);
  begin(p, count);
  return 0;
}

int tl_parts_next(parts *p, size_t limit) { return next(p, limit); }

int tl_parts_finish(parts *p, size_t limit) {
  claim_own(p, 1);
  return join(p, limit);
}
#endif

#if defined __wasm__
// A part: the function's number, the number of its arguments, and those; at the end the address of its plan.
enum { PARTS = 32, PART = 32 };

static double *numbers(parts *p, intptr_t i) { return (double *)p + PARTS + i * PART; }

__attribute__((minsize)) void set_part(parts *p, intptr_t i, const plan *own, const intptr_t *words, float x) {
  double *to = numbers(p, i);
  to[0] = own->number;
  to[1] = own->words + own->floats;
  for (intptr_t j = 0; j < own->words; j++) to[2 + j] = words[j];
  to[2 + own->words] = x;
  to[PART - 1] = (intptr_t)own;
}

static __attribute__((minsize)) void compute(parts *p, int i) {
  const double *from = numbers(p, i);
  const plan *own = (const plan *)(intptr_t)from[PART - 1];
  intptr_t words[MOST_WORDS];
  for (intptr_t j = 0; j < own->words; j++) words[j] = (intptr_t)from[2 + j];
  call_words(own, words, (float)from[2 + own->words]);
}
#else
__attribute__((minsize)) void set_part(parts *p, intptr_t i, const plan *own, const intptr_t *words, float x) {
  part *to = p->calls + i;
  to->plan = *own;
  for (intptr_t j = 0; j < own->words; j++) to->words[j] = words[j];
  to->x = x;
  write(&p->has_calls, 1);
}
#endif

int compute_parts(parts *p, size_t count, size_t limit) {
  begin(p, count);
  int part = 0;
  do compute(p, part);
  while ((part = next(p, limit)) >= 0);
  return part;
}
