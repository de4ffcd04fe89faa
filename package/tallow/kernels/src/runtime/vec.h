// The vector type of every kernel: `vf` holds LANES floats, four in WASM SIMD128, SSE and NEON, eight in AVX2, sixteen in
// AVX-512. A file where a result takes many operations that wait for each other defines REGISTERS first: with AVX-512, the
// floats of so many registers are a vector.
// Uses GCC/Clang vector extensions, so that one source serves every target; freestanding, so nothing is linked.
//
// Rounding: a * b + c may be fused into one rounding if the target supports it (WASM relaxed-simd, FMA3, NEON). No
// kernel's contract depends on it. Nothing else of -ffast-math is enabled: NaN and infinities follow IEEE 754.

#ifndef TALLOW_VEC_H
#define TALLOW_VEC_H

#include <stddef.h>
#include <stdint.h>

#if !defined REGISTERS || !defined __AVX512F__
#undef REGISTERS
#define REGISTERS 1
#endif
#if defined __AVX512F__
#define LANES (16 * REGISTERS)
#elif defined __AVX2__
#define LANES 8
#else
#define LANES 4
#endif

// How many vector registers the target has, for the size of tiles.
#if defined __AVX512F__ || defined __aarch64__
#define VECTOR_REGISTERS 32
#else
#define VECTOR_REGISTERS 16
#endif

// Whether some lanes of a vector can be loaded and stored, and the memory of the others is not touched.
#if defined __AVX512F__
#define HAS_MASKS 1
#else
#define HAS_MASKS 0
#endif

#if defined _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));
typedef float vf_unaligned __attribute__((vector_size(4 * LANES), aligned(4)));
typedef float quad __attribute__((vector_size(16), aligned(4)));
typedef float one_register __attribute__((vector_size(64))); // of AVX-512

static inline vf load(const float *p) { return *(const vf_unaligned *)p; }
static inline void store(float *p, vf v) { *(vf_unaligned *)p = v; }
static inline vf splat(float s) { return s - (vf){0}; } // not + 0, which would change -0

static inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t rounded_up(size_t n, size_t to) { return (n + to - 1) / to * to; }
static inline size_t to_lanes(size_t n) { return rounded_up(n, LANES); }

// The floats before the next address of a whole vector, from which on no store of one crosses a cache line: a processor takes
// twice as long for those that do.
static inline size_t before_line(const float *y) { return (0 - (uintptr_t)y / sizeof *y) % LANES; }

static inline void clear(float *x, size_t n) {
  for (size_t i = 0; i < n; i++) x[i] = 0.0f;
}

// Prefetch n floats; WASM has no such instruction.
static inline void fetch(const float *x, size_t n) {
#if defined __wasm__
  (void)x, (void)n;
#else
  for (size_t i = 0; i < n; i += 16) __builtin_prefetch(x + i);
#endif
}

typedef uint16_t vu16 __attribute__((vector_size(2 * LANES), aligned(2)));
typedef int16_t vs16 __attribute__((vector_size(2 * LANES), aligned(2)));
static inline vi load_u16(const uint16_t *p) { return __builtin_convertvector(*(const vu16 *)p, vi); } // zero-extended
static inline vi load_s16(const uint16_t *p) { return __builtin_convertvector(*(const vs16 *)p, vi); } // sign-extended

// a * b + c. Clang has no portable builtin for the relaxed WASM instruction, hence the one intrinsic here; natively
// -ffp-contract=fast fuses.
static inline vf fma(vf a, vf b, vf c) {
#if defined __wasm_relaxed_simd__
  return __builtin_wasm_relaxed_madd_f32x4(a, b, c);
#else
  return a * b + c;
#endif
}

// a * b + c of vectors of any length, rounded once where every processor of the target can. For results whose bits must not
// depend on what surrounds them: with two products in a sum, the compiler chooses which it fuses, and may do so differently
// in each copy of an inlined function. Where this is not fused, the file forbids the compiler to: see quantized.h.
#if defined __FMA__ || defined __aarch64__
#define TIMES_PLUS(a, b, c) __builtin_elementwise_fma(a, b, c)
#else
#define TIMES_PLUS(a, b, c) ((a) * (b) + (c))
#endif

static inline vi select_bits(vi mask, vi yes, vi no) { return (mask & yes) | (~mask & no); }
static inline vf select(vi mask, vf yes, vf no) { return (vf)select_bits(mask, (vi)yes, (vi)no); }
static inline vf max(vf a, vf b) { return select(a > b, a, b); } // either of the two if one is NaN

static inline vf clamp(vf x, vf least, vf most) { // may lose NaN: it compiles to relaxed minima and maxima
  x = select(x < least, least, x);
  return select(x > most, most, x);
}

static inline float sum(vf v) {
#if LANES == 16
  typedef float half __attribute__((vector_size(32)));
  half w = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) + __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  return ((w[0] + w[4]) + (w[2] + w[6])) + ((w[1] + w[5]) + (w[3] + w[7]));
#elif LANES == 8
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
#else
  return (v[0] + v[2]) + (v[1] + v[3]);
#endif
}

static inline float largest(vf v) {
  float m = v[0];
  for (int i = 1; i < LANES; i++) m = v[i] > m ? v[i] : m;
  return m;
}

// c[0] + c[1] x + ... + c[degree] x^degree
static inline __attribute__((always_inline)) vf polynomial(const float *c, int degree, vf x) {
  vf y = splat(c[degree]);
#pragma clang loop unroll(full)
  while (degree--) y = fma(y, x, splat(c[degree]));
  return y;
}

#define ROUNDING 12582912.0f // 1.5 * 2^23: a float to which it is added is rounded to an integer, in its low bits

// x = n ln 2 + r, |r| ≤ ln 2 / 2. n receives the integer as a float plus ROUNDING.
static inline vf exp_remainder(vf x, vi *n) {
  vf shifted = fma(x, splat(1.44269504f), splat(ROUNDING)), whole = shifted - splat(ROUNDING);
  *n = (vi)shifted;
  vf r = fma(whole, splat(-0.693359375f), x); // ln 2 in two parts, the first short enough that n times it is exact
  return fma(whole, splat(2.12194440e-4f), r);
}

// (e^r - 1 - r) / r², fitted by minimax: e^r has a relative error of 3e-9 in exact arithmetic.
static inline vf exp_tail(vf r) {
  static const float c[] = {0.5f, 0.16666517f, 0.0416662f, 0.0083690966f, 0.001395085f};
  return polynomial(c, 4, r);
}

// e^r
static inline vf exp_near_0(vf r) { return fma(fma(exp_tail(r), r, splat(1.0f)), r, splat(1.0f)); }

// y, and NaN where x is: `clamp` may have lost it.
static inline vf or_nan(vf y, vf x) {
#if defined __wasm_relaxed_simd__
  return (vf)((vi)y | (x != x));
#else
  (void)x;
  return y;
#endif
}

#if defined __AVX512F__
static inline vf scaled(vf y, vf n) { // y 2^n, rounded once
#pragma clang loop unroll(full)
  for (int i = 0; i < REGISTERS; i++) {
    one_register *own = (one_register *)&y + i;
    *own = __builtin_ia32_scalefps512_mask(*own, ((one_register *)&n)[i], *own, -1, 4); // all lanes, the current rounding mode
  }
  return y;
}

#endif

// y 2^n, rounded once, for n of `exp_remainder`. AVX-512 has an instruction; else 2^n is two exact factors.
static inline vf times_power(vf y, vi n) {
#if defined __AVX512F__
  return scaled(y, (vf)n - splat(ROUNDING));
#else
  vi exponent = n - (vi)splat(ROUNDING), half = exponent >> 1;
  return y * (vf)((half + 127) << 23) * (vf)((exponent - half + 127) << 23);
#endif
}

// e^x to 1 ulp or so. Results underflow through the subnormals to 0 and overflow to infinity. exp(NaN) is NaN, exp(-inf) is
// exactly 0.
static inline vf exp(vf x) {
  vi n;
  vf y = exp_near_0(exp_remainder(clamp(x, splat(-104.0f), splat(89.0f)), &n));
  return or_nan(times_power(y, n), x);
}

// exp for |x| ≤ 87.3, and faster: n is added to the exponent of e^r.
static inline vf exp_normal(vf x) {
  vi n;
  vf y = exp_near_0(exp_remainder(x, &n));
#if defined __AVX512F__
  return times_power(y, n);
#else
  return (vf)((vi)y + (n << 23));
#endif
}

// exp for x ≤ 1: subnormal results become 0.
static inline vf exp_below_1(vf x) {
  vi vanishes = x < splat(-87.3f);
#if defined __AVX512F__
  return select(vanishes, splat(0.0f), exp_normal(x));
#else
  vi is_nan = x != x;
  return (vf)(((vi)exp_normal(x) & ~vanishes) | is_nan);
#endif
}

// 2^x to 2 ulp for x ≤ 1: subnormal results become 0, NaN may become a number. The polynomial is 2^r for |r| ≤ 1/2, by
// minimax.
static inline vf power_of_2(vf x) {
#if defined __AVX512F__
  vf whole = __builtin_elementwise_roundeven(x);
#else
  vf shifted = x + splat(ROUNDING), whole = shifted - splat(ROUNDING);
#endif
  static const float c[] = {1.0f, 0.693147004f, 0.240222424f, 0.0555073358f, 0.00967151299f, 0.00132647296f};
  vf y = polynomial(c, 5, x - whole);
#if defined __AVX512F__
  y = scaled(y, whole);
#else
  y = (vf)((vi)y + ((vi)shifted << 23));
#endif
  return select(x < splat(-126.0f), splat(0.0f), y);
}

static inline vf sigmoid(vf x) { return splat(1.0f) / (splat(1.0f) + exp(-x)); }

// tanh x to 3 ulp: t / (t + 2) with t = e^2|x| - 1, and the sign of x. With 2|x| = n ln 2 + r as in exp, t is 2^n (e^r - 1)
// + (2^n - 1): near 0, where n is 0, it is as accurate as the series of e^r - 1. For large n, where r is less accurate than
// in exp, tanh x is near 1.
static inline vf tanh(vf x) {
  vi sign = (vi)x & INT32_MIN;
  vf size = (vf)((vi)x ^ sign), twice = clamp(size + size, splat(0.0f), splat(87.0f));
  vf shifted = fma(twice, splat(1.44269504f), splat(ROUNDING)), r = fma(shifted - splat(ROUNDING), splat(-0.69314718f), twice);
  vf scale = (vf)(((vi)shifted << 23) + 0x3f800000), t = fma(scale, fma(exp_tail(r) * r, r, r), scale - splat(1.0f));
  return or_nan((vf)((vi)(t / (t + splat(2.0f))) | sign), x);
}

#if HAS_MASKS
// Load the lanes of a mask, and take the others from `otherwise`; and store them.
static inline one_register load_lanes(const float *p, one_register otherwise, uint16_t mask) {
  return __builtin_ia32_loadups512_mask(p, otherwise, mask);
}
static inline void store_lanes(float *p, one_register v, uint16_t mask) { __builtin_ia32_storeups512_mask(p, v, mask); }

// Of n elements, those of register i.
static inline uint16_t part_of(size_t n, size_t i) {
  return (uint16_t)((1u << smaller(n - smaller(n, 16 * i), 16)) - 1);
}

// Load the last n ≤ LANES elements of a row as a vector padded with `fill`; and store them.
static inline vf load_part(const float *p, size_t n, float fill) {
  vf lanes = splat(fill);
  for (size_t i = 0; i < REGISTERS; i++) {
    one_register *own = (one_register *)&lanes + i;
    *own = load_lanes(p + 16 * i, *own, part_of(n, i));
  }
  return lanes;
}

static inline void store_part(float *p, size_t n, vf v) {
  for (size_t i = 0; i < REGISTERS; i++)
    store_lanes(p + 16 * i, ((one_register *)&v)[i], part_of(n, i));
}
#else
// Not inlined: the code of a loop for each end of a row would be a large part of the library.
static inline __attribute__((noinline)) void copy_few(float *to, const float *from, size_t n) {
#pragma clang loop unroll(disable) vectorize(disable)
  for (size_t i = 0; i < n; i++) to[i] = from[i];
}

static inline vf load_part(const float *p, size_t n, float fill) {
  vf lanes = splat(fill);
  copy_few((float *)&lanes, p, n);
  return lanes;
}

static inline void store_part(float *p, size_t n, vf v) { copy_few(p, (const float *)&v, n); }
#endif

// The next elements of n, at most a vector of them.
static inline vf load_up_to(const float *p, size_t n) { return n < LANES ? load_part(p, n, 0.0f) : load(p); }

static inline void store_up_to(float *p, size_t n, vf v) {
  if (n < LANES)
    store_part(p, n, v);
  else
    store(p, v);
}

// Return the largest element of a row, -inf if it is empty; any element if there is a NaN.
static inline float largest_of(const float *x, size_t n) {
  vf m[4];
  for (size_t u = 0; u < 4; u++) m[u] = splat(-__builtin_inff());
  size_t i = 0;
  for (; i + 4 * LANES <= n; i += 4 * LANES)
    for (size_t u = 0; u < 4; u++) m[u] = max(load(x + i + u * LANES), m[u]);
  for (; i + LANES <= n; i += LANES) m[0] = max(load(x + i), m[0]);
  m[1] = max(load_part(x + i, n - i, -__builtin_inff()), m[1]);
  return largest(max(max(m[0], m[1]), max(m[2], m[3])));
}

#endif
