// CUDA C++ on a CPU, for kernel tests: the CUDA types, intrinsics and functions that tallow_cuda's sources use, no more.
//
// How: each thread of a block is a fiber. One fiber runs at a time, until it waits at a barrier or a warp-wide function.
// A warp runs as far ahead of the next as it can, and blocks run one after another. So the order of threads is fixed, and
// can be reversed: if the result then differs, the kernel has a race.
//
// What a GPU leaves undefined is set to fail: shared memory holds NaN at the start of a block, asynchronous copies arrive
// only when the kernel waits for them, and a launch fails if threads of a block wait at different barriers. Numbers below
// 2^-126 are flushed to zero, as in CuPy's compilation.

#pragma once

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define TALLOW_EMULATED
#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static __attribute__((section("shared_memory")))
#define __constant__ static const
#define __restrict__
#define __grid_constant__

struct dim3 {
    unsigned x, y, z;
};

static dim3 gridDim, blockDim, blockIdx;

// The linker section of shared memory of fixed size, if there is any.
extern "C" __attribute__((weak, visibility("hidden"))) unsigned char __start_shared_memory[], __stop_shared_memory[];

namespace emulated {

constexpr int WARP_SIZE = 32, MOST_THREADS = 1024, STACK = 1 << 16, WORDS = 16, GUARD = 64;
constexpr int MOST_SHARED = 227 << 10;  // bytes per block on compute capability 9.0

struct Copy {
    void* to;
    const void* from;
    int size;
};

struct Fiber {
    ucontext_t context;  // entry point
    jmp_buf place;       // where to continue
    dim3 index;
    int number;
    bool started, done;
    uint32_t slots[2][WORDS];  // values for the other lanes of the warp, alternating
    int turn;
    Copy copies[256];      // asynchronous copies in order
    int first_copy, last_copy, committed[64], groups;
};

// A barrier for fibers. It opens when all fibers that are still running have arrived.
struct Barrier {
    int waiting;
    unsigned opened;
};

static Fiber* fibers;
static char* stacks;
static Fiber* current;
static jmp_buf scheduler;
static int threads;
static Barrier block_barrier, warp_barriers[MOST_THREADS / WARP_SIZE];
static int any_of_block;
static unsigned long progress;  // number of opened barriers and finished fibers
static unsigned char* shared;
static const char* failed;  // error message if the launch failed

// Switch fibers by longjmp: swapcontext would make a system call for the signal mask each time.
[[noreturn]] inline void fail(const char* what) {
    failed = what;
    _longjmp(scheduler, 1);
}

inline int running(int from, int to) {
    int n = 0;
    for (int i = from; i < to; i++) n += !fibers[i].done;
    return n;
}

inline void yield() {
    if (!_setjmp(current->place)) _longjmp(scheduler, 1);
}

__attribute__((noinline)) inline void resume(Fiber& fiber) {
    current = &fiber;
    if (_setjmp(scheduler)) return;
    if (fiber.started) _longjmp(fiber.place, 1);
    fiber.started = true;
    setcontext(&fiber.context);
}

inline void meet(Barrier& barrier, int from, int to) {
    unsigned now = barrier.opened;
    barrier.waiting++;
    while (barrier.opened == now) {
        if (barrier.waiting == running(from, to)) {
            barrier.waiting = 0;
            barrier.opened++;
            progress++;
            return;
        }
        yield();
    }
}

inline void meet_block() { meet(block_barrier, 0, threads); }

inline int warp_start() { return current->number / WARP_SIZE * WARP_SIZE; }

inline void meet_warp() {
    int start = warp_start(), end = start + WARP_SIZE < threads ? start + WARP_SIZE : threads;
    meet(warp_barriers[start / WARP_SIZE], start, end);
}

// Values that the lanes of a warp exchange.
struct Warp {
    const Fiber* lanes;
    int turn;

    const uint32_t* operator[](int lane) const { return lanes[lane].slots[turn]; }
};

// Exchange `size` bytes between all lanes of the warp: each lane writes its value, then reads those of others. Two slots
// alternate, so a lane can overwrite a value only after all lanes have read it.
template <class Look> inline void exchange(const void* shown, int size, Look look) {
    int turn = current->turn ^= 1;
    memcpy(current->slots[turn], shown, size);
    meet_warp();
    look(Warp{&fibers[warp_start()], turn});
}

template <class T> inline T from_lane(T value, int lane) {
    static_assert(sizeof(T) <= WORDS * 4, "too large");
    T found = value;
    if (warp_start() + lane >= threads) fail("a shuffle reads a lane that does not exist");
    exchange(&value, sizeof(T), [&](Warp warp) { memcpy(&found, warp[lane], sizeof(T)); });
    return found;
}

// Asynchronous copies: a ring buffer of copies, and one of the ends of groups.
constexpr int COPIES = 256, GROUPS = 64;

inline void copy_later(void* to, const void* from, int size, bool wanted) {
    if ((uintptr_t)to % size || (wanted && (uintptr_t)from % size)) fail("an asynchronous copy is misaligned");
    if (current->last_copy - current->first_copy == COPIES) fail("more asynchronous copies than are emulated");
    current->copies[current->last_copy++ % COPIES] = {to, wanted ? from : 0, size};
}

inline void commit_copies() {
    if (current->groups == GROUPS) fail("more groups of asynchronous copies than are emulated");
    current->committed[current->groups++] = current->last_copy;
}

inline void finish_copies(int pending) {
    int finished = current->groups - pending;
    if (finished <= 0) return;
    for (int end = current->committed[finished - 1]; current->first_copy < end; current->first_copy++) {
        const Copy& copy = current->copies[current->first_copy % COPIES];
        if (copy.from)
            memcpy(copy.to, copy.from, copy.size);
        else
            memset(copy.to, 0, copy.size);
    }
    current->groups -= finished;
    for (int i = 0; i < current->groups; i++) current->committed[i] = current->committed[i + finished];
}

inline float float_of_half(unsigned short bits) {
    _Float16 x;
    memcpy(&x, &bits, 2);
    return (float)x;
}

inline unsigned short half_of_float(float x) {
    _Float16 y = (_Float16)x;
    unsigned short bits;
    memcpy(&bits, &y, 2);
    return bits;
}

template <class... A> struct Arguments {};

template <int... I> struct Indices {};

template <int N, int... I> struct UpTo : UpTo<N - 1, N - 1, I...> {};
template <int... I> struct UpTo<0, I...> {
    typedef Indices<I...> type;
};

template <class... A, int... I> inline void invoke(void (*kernel)(A...), void** arguments, Indices<I...>) {
    kernel(*(A*)arguments[I]...);
}

template <class... A> inline void call(void (*kernel)(A...), void** arguments) {
    invoke(kernel, arguments, typename UpTo<sizeof...(A)>::type());
}

static void (*entry)(void**);
static void** entry_arguments;

inline void run_fiber() {
    entry(entry_arguments);
    if (current->first_copy != current->last_copy) fail("a thread ends before its asynchronous copies complete");
    current->done = true;
    progress++;
    yield();
    fail("a thread that has ended was run");
}

// Run a warp as far ahead of the others as possible, so that data it overwrites too early changes the result.
// Return the number of its threads that have finished.
inline int run_warp(int warp, bool backwards) {
    int start = warp * WARP_SIZE, end = start + WARP_SIZE < threads ? start + WARP_SIZE : threads, ended = 0;
    unsigned long before;
    do {
        before = progress;
        for (int i = start; i < end; i++) {
            Fiber& fiber = fibers[backwards ? start + end - 1 - i : i];
            if (fiber.done) continue;
            resume(fiber);
            if (failed) return ended;
            ended += fiber.done;
        }
    } while (progress != before);
    return ended;
}

inline void run_block(bool backwards) {
    block_barrier = Barrier();
    for (Barrier& barrier : warp_barriers) barrier = Barrier();
    for (int i = 0; i < threads; i++) {
        Fiber& fiber = fibers[i];
        fiber.number = i;
        fiber.index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
        fiber.started = fiber.done = false;
        fiber.turn = 0;
        fiber.first_copy = fiber.last_copy = fiber.groups = 0;
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = stacks + (size_t)i * STACK;
        fiber.context.uc_stack.ss_size = STACK;
        fiber.context.uc_link = 0;
        makecontext(&fiber.context, (void (*)())run_fiber, 0);
    }
    int warps = (threads + WARP_SIZE - 1) / WARP_SIZE;
    for (int left = threads; left > 0;) {
        unsigned long before = progress;
        for (int w = 0; w < warps; w++) {
            left -= run_warp(backwards ? warps - 1 - w : w, backwards);
            if (failed) return;
        }
        if (left > 0 && progress == before) {
            failed = "deadlock: threads wait at a barrier that others never reach";
            return;
        }
    }
}

// Flush subnormal operands and results to zero while an object of this class exists.
class FlushToZero {
#if defined(__x86_64__)
    unsigned before = __builtin_ia32_stmxcsr();

  public:
    FlushToZero() { __builtin_ia32_ldmxcsr(before | 0x8040); }
    ~FlushToZero() { __builtin_ia32_ldmxcsr(before); }
#elif defined(__aarch64__)
    unsigned long before;

  public:
    FlushToZero() {
        asm volatile("mrs %0, fpcr" : "=r"(before));
        asm volatile("msr fpcr, %0" ::"r"(before | 1ul << 24));
    }
    ~FlushToZero() { asm volatile("msr fpcr, %0" ::"r"(before)); }
#endif
};

// Run a launch. Return null, or an error message.
inline const char* launch(void (*kernel)(void**), const unsigned* grid, const unsigned* block, int shared_bytes,
                          void** arguments, bool backwards) {
    static unsigned char canary[GUARD];
    memset(canary, 0xa5, GUARD);
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    threads = block[0] * block[1] * block[2];
    if (threads < 1 || threads > MOST_THREADS) return "a block has from 1 to 1024 threads";
    if (block[2] > 64) return "a block is at most 64 deep";
    if (shared_bytes > MOST_SHARED) return "more shared memory than a block can have";
    if (grid[0] < 1 || grid[1] < 1 || grid[2] < 1 || grid[1] > 65535 || grid[2] > 65535)
        return "a grid has from 1 to 65535 blocks in y and z";
    if (!fibers) {
        fibers = (Fiber*)malloc(sizeof(Fiber) * MOST_THREADS);
        stacks = (char*)malloc((size_t)STACK * MOST_THREADS);
    }
    FlushToZero flushed;
    entry = kernel;
    entry_arguments = arguments;
    shared = (unsigned char*)aligned_alloc(1024, ((size_t)shared_bytes + GUARD + 1023) / 1024 * 1024);
    long blocks = (long)grid[0] * grid[1] * grid[2];
    failed = 0;
    for (long i = 0; i < blocks && !failed; i++) {
        long b = backwards ? blocks - 1 - i : i;
        blockIdx = {(unsigned)(b % grid[0]), (unsigned)(b / grid[0] % grid[1]), (unsigned)(b / ((long)grid[0] * grid[1]))};
        memset(shared, 0xff, shared_bytes);  // NaN in every float format
        if (__start_shared_memory) memset(__start_shared_memory, 0xff, __stop_shared_memory - __start_shared_memory);
        memcpy(shared + shared_bytes, canary, GUARD);
        run_block(backwards);
        if (memcmp(shared + shared_bytes, canary, GUARD)) failed = "shared memory was written beyond its end";
    }
    free(shared);
    return failed;
}

}  // namespace emulated

#define threadIdx (emulated::current->index)

inline void __syncthreads() { emulated::meet_block(); }

inline int __syncthreads_or(int predicate) {
    emulated::meet_block();
    emulated::any_of_block = 0;
    emulated::meet_block();
    emulated::any_of_block |= predicate != 0;
    emulated::meet_block();
    return emulated::any_of_block;
}

inline void __syncwarp(unsigned = 0xffffffffu) { emulated::meet_warp(); }
inline void __threadfence() {}

template <class T> inline T __shfl_sync(unsigned, T value, int lane, int width = 32) {
    int own = emulated::current->number % 32;
    return emulated::from_lane(value, own / width * width + lane % width);
}

template <class T> inline T __shfl_xor_sync(unsigned, T value, int mask, int = 32) {
    return emulated::from_lane(value, (emulated::current->number % 32) ^ mask);
}

template <class T> inline T __shfl_down_sync(unsigned, T value, int steps, int width = 32) {
    int own = emulated::current->number % 32, lane = own + steps;
    return emulated::from_lane(value, lane / width == own / width ? lane : own);
}

template <class T> inline T __shfl_up_sync(unsigned, T value, int steps, int width = 32) {
    int own = emulated::current->number % 32, lane = own - steps;
    return emulated::from_lane(value, lane >= own / width * width ? lane : own);
}

inline unsigned __ballot_sync(unsigned, int predicate) {
    unsigned bits = 0, mine = predicate != 0;
    int start = emulated::warp_start();
    emulated::exchange(&mine, 4, [&](emulated::Warp warp) {
        for (int i = 0; i < 32 && start + i < emulated::threads; i++)
            bits |= (warp.lanes[i].done ? 0 : warp[i][0]) << i;
    });
    emulated::meet_warp();  // a lane may finish now, before the others have read its value
    return bits;
}

inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __ffs(unsigned x) { return __builtin_ffs((int)x); }

inline float __uint_as_float(unsigned x) {
    float y;
    memcpy(&y, &x, 4);
    return y;
}

inline unsigned __float_as_uint(float x) {
    unsigned y;
    memcpy(&y, &x, 4);
    return y;
}

inline float __int_as_float(int x) { return __uint_as_float((unsigned)x); }
inline int __float_as_int(float x) { return (int)__float_as_uint(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
template <class T> inline T __ldg(const T* p) { return *p; }
template <class T> inline T min(T a, T b) { return a < b ? a : b; }
template <class T> inline T max(T a, T b) { return a > b ? a : b; }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }

template <class T> inline T atomicAdd(T* to, T x) {
    T before = *to;
    *to = before + x;
    return before;
}

template <class T> inline T atomicMax(T* to, T x) {
    T before = *to;
    if (x > before) *to = x;
    return before;
}

template <class T> inline T atomicCAS(T* to, T expected, T x) {
    T before = *to;
    if (before == expected) *to = x;
    return before;
}

template <class T> inline T atomicExch(T* to, T x) {
    T before = *to;
    *to = x;
    return before;
}
