// tl_fft_f32       y[r, k] = scale · Σ_j x[r, j] exp(sign · 2πi j k / n), of complex numbers
// tl_rfft_f32      real x, sign -1, k ≤ n/2: the other coefficients are the conjugates of these
// tl_irfft_f32     real y, sign 1, from the coefficients of x with k ≤ n/2
//   source  Stockham's FFT in mixed radix: Van Loan, Computational Frameworks for the Fast Fourier Transform, 1992, 1.7.
//           Two neighbours of real numbers are one complex number of a transform of half the length: the same, 4.3.
// tl_stft_f32      as tl_rfft_f32, of rows of x times the window: row r begins at b · length + t · hop, r = b · frames + t
//   layout  complex numbers are pairs of floats; x and y row-major, rows contiguous: (rows, n), half spectra (rows, n/2 + 1);
//           of tl_stft_f32, x (batch, length) and window (n,)
//   factors of n, for real numbers of n/2, each 2, 3, 4 or 5
//   roots   for real numbers first exp(-2πi k / n) for k ≤ n/4; then for each factor r of n or n/2, where m · r is left of
//           it: exp(-2πi p k / (m r)) for each p < m, and 1 ≤ k < r
//   scratch tl_fft_scratch(n) floats, contents irrelevant
//   align   none needed       length  n ≥ 1; of real numbers n is even
//   alias   y and x do not overlap
//   error   ≤ 1e-6 · the norm of the row, for n ≤ 4096. Coefficients of a row with an infinite number are infinite or NaN
//   threads parts of the rows have the bits of the whole
//
// tl_fft_row_f32, tl_rfft_row_f32, tl_irfft_row_f32    the same, for few or long rows: the lanes of a vector are of one row
//   source  Bailey's four steps: the same, 3.3. Lane l has the numbers x[l + LANES j]. Its transform, times exp(-2πi l k / n),
//           is summed over the lanes by transforms of LANES numbers.
//   length  h, which is n, of real numbers n/2, is a multiple of tl_fft_lanes()²; n ≤ 2^18
//   factors of h / LANES
//   roots   for real numbers first exp(-2πi k / n) for k ≤ n/4; then exp(-2πi l k / h) for each k < h / LANES, the real parts
//           for each lane l and the imaginary ones; then of the factors of LANES, 4 first, and then of h / LANES, as above
//   scratch 4 n floats, contents irrelevant
#include "product/transpose.h"

typedef struct {
  vf re, im;
} complex_vf;

static inline complex_vf at(const float *z, size_t i) { return (complex_vf){load(z + 2 * i * LANES), load(z + (2 * i + 1) * LANES)}; }
static inline void put(float *z, size_t i, complex_vf a) { store(z + 2 * i * LANES, a.re), store(z + (2 * i + 1) * LANES, a.im); }
static inline complex_vf plus(complex_vf a, complex_vf b) { return (complex_vf){a.re + b.re, a.im + b.im}; }
static inline complex_vf minus(complex_vf a, complex_vf b) { return (complex_vf){a.re - b.re, a.im - b.im}; }
static inline complex_vf times(complex_vf a, float s) { return (complex_vf){a.re * splat(s), a.im * splat(s)}; }
static inline complex_vf times_i(complex_vf a, float s) { return (complex_vf){a.im * splat(-s), a.re * splat(s)}; } // i s a
static inline complex_vf conjugate(complex_vf a) { return (complex_vf){a.re, -a.im}; }

static inline complex_vf times_root(complex_vf a, const float *root, float sign) {
  vf c = splat(root[0]), s = splat(-sign * root[1]);
  return (complex_vf){a.re * c - a.im * s, a.re * s + a.im * c};
}

// The transform of `r` numbers, in place.
static inline __attribute__((always_inline)) void butterfly(complex_vf *a, size_t r, float sign) {
  if (r == 2) {
    complex_vf b = a[1];
    a[1] = minus(a[0], b), a[0] = plus(a[0], b);
  } else if (r == 3) {
    complex_vf sum = plus(a[1], a[2]), turned = times_i(minus(a[1], a[2]), sign * 0.866025404f);
    complex_vf middle = minus(a[0], times(sum, 0.5f));
    a[0] = plus(a[0], sum), a[1] = plus(middle, turned), a[2] = minus(middle, turned);
  } else if (r == 4) {
    complex_vf even = plus(a[0], a[2]), odd = plus(a[1], a[3]);
    complex_vf middle = minus(a[0], a[2]), turned = times_i(minus(a[1], a[3]), sign);
    a[0] = plus(even, odd), a[2] = minus(even, odd), a[1] = plus(middle, turned), a[3] = minus(middle, turned);
  } else {
    const float c1 = 0.309016994f, c2 = -0.809016994f, s1 = 0.951056516f, s2 = 0.587785252f; // of 72 and 144 degrees
    complex_vf near = plus(a[1], a[4]), far = plus(a[2], a[3]), d1 = minus(a[1], a[4]), d2 = minus(a[2], a[3]);
    complex_vf m1 = plus(a[0], plus(times(near, c1), times(far, c2)));
    complex_vf m2 = plus(a[0], plus(times(near, c2), times(far, c1)));
    complex_vf t1 = times_i(plus(times(d1, s1), times(d2, s2)), sign);
    complex_vf t2 = times_i(minus(times(d1, s2), times(d2, s1)), sign);
    a[0] = plus(a[0], plus(near, far));
    a[1] = plus(m1, t1), a[4] = minus(m1, t1), a[2] = plus(m2, t2), a[3] = minus(m2, t2);
  }
}

// One factor: z (m · r, done) of what is left and what is done, to (m, r · done).
static inline __attribute__((always_inline)) void pass(float *to, const float *z, size_t r, size_t m, size_t done,
                                                       const float *roots, float sign) {
  for (size_t p = 0; p < m; p++, roots += 2 * (r - 1))
    for (size_t q = 0; q < done; q++) {
      complex_vf a[5];
#pragma clang loop unroll(full)
      for (size_t j = 0; j < r; j++) a[j] = at(z, q + done * (p + m * j));
      butterfly(a, r, sign);
      put(to, q + done * r * p, a[0]);
#pragma clang loop unroll(full)
      for (size_t k = 1; k < r; k++)
        put(to, q + done * (r * p + k), p ? times_root(a[k], roots + 2 * (k - 1), sign) : a[k]);
    }
}

// Transform z (n) of complex vectors; return where the result is, z or `other`.
static __attribute__((noinline)) float *transform(float *z, float *other, size_t n, const size_t *factors, const float *roots,
                                                  float sign) {
  for (size_t done = 1, left = n; left > 1; factors++) {
    size_t r = *factors, m = left / r;
    if (r == 2)
      pass(other, z, 2, m, done, roots, sign);
    else if (r == 3)
      pass(other, z, 3, m, done, roots, sign);
    else if (r == 4)
      pass(other, z, 4, m, done, roots, sign);
    else
      pass(other, z, 5, m, done, roots, sign);
    roots += 2 * m * (r - 1);
    done *= r, left = m;
    float *swapped = z;
    z = other, other = swapped;
  }
  return z;
}

// Between z (half), the coefficients of complex numbers, and x (half + 1), those of the real ones of which each is two.
// With the coefficients E of the first and O of the second ones: z = E + i O, x[k] = E[k] + root[k] O[k]. E and O are those
// of real numbers: E[half - k] is the conjugate of E[k].
static void to_half_spectrum(float *x, const float *z, size_t half, const float *roots) {
  complex_vf first = at(z, 0);
  put(x, 0, (complex_vf){first.re + first.im, (vf){0}}); // sums, which may be infinite
  put(x, half, (complex_vf){first.re - first.im, (vf){0}});
  for (size_t k = 1; 2 * k <= half; k++) {
    roots += 2;
    complex_vf a = at(z, k), b = conjugate(at(z, half - k));
    complex_vf even = times(plus(a, b), 0.5f), odd = times_root(times_i(minus(a, b), -0.5f), roots, -1.0f);
    put(x, k, plus(even, odd));
    put(x, half - k, conjugate(minus(even, odd)));
  }
}

static void from_half_spectrum(float *z, const float *x, size_t half, const float *roots) { // twice as large
  for (size_t k = 0; 2 * k <= half; k++, roots += 2) {
    complex_vf a = at(x, k), b = conjugate(at(x, half - k));
    if (!k) a.im = b.im = (vf){0}; // of real numbers they are zero
    complex_vf even = plus(a, b), odd = times_i(times_root(minus(a, b), roots, 1.0f), 1.0f);
    put(z, k, plus(even, odd));
    if (k) put(z, half - k, conjugate(minus(even, odd)));
  }
}

EXPORT size_t tl_fft_scratch(size_t n) { return 4 * (n + 2) * LANES; }

// Take some rows of `width` floats, `step` after each other, a lane for each; and give them back.
static void take(float *z, const float *x, size_t step, size_t rows, size_t width) {
  if (rows < LANES) clear(z, width * LANES);
  transpose(z, LANES, x, step, rows, width);
}

static void give(float *y, float *z, size_t rows, size_t width, float scale) {
  if (scale != 1.0f)
    for (size_t i = 0; i < width * LANES; i += LANES) store(z + i, load(z + i) * splat(scale));
  transpose(y, width, z, LANES, width, rows);
}

EXPORT void tl_fft_f32(float *y, const float *x, size_t rows, size_t n, const size_t *factors, const float *roots, int sign,
                       float *scratch, float scale) {
  float *z = scratch, *other = z + 2 * (n + 2) * LANES;
  for (size_t count; rows; rows -= count, x += count * 2 * n, y += count * 2 * n) {
    count = smaller(rows, LANES);
    take(z, x, 2 * n, count, 2 * n);
    give(y, transform(z, other, n, factors, roots, (float)sign), count, 2 * n, scale);
  }
}

// The half spectra of some rows, which are in scratch.
static void half_spectra(float *y, float *scratch, size_t rows, size_t n, const size_t *factors, const float *roots, float scale) {
  float *z = scratch, *other = z + 2 * (n + 2) * LANES;
  float *done = transform(z, other, n / 2, factors, roots + 2 * (n / 4 + 1), -1.0f), *spectrum = done == z ? other : z;
  to_half_spectrum(spectrum, done, n / 2, roots);
  give(y, spectrum, rows, n + 2, scale);
}

EXPORT void tl_rfft_f32(float *y, const float *x, size_t rows, size_t n, const size_t *factors, const float *roots,
                        float *scratch, float scale) {
  for (size_t count; rows; rows -= count, x += count * n, y += count * (n + 2)) {
    count = smaller(rows, LANES);
    take(scratch, x, n, count, n);
    half_spectra(y, scratch, count, n, factors, roots, scale);
  }
}

EXPORT void tl_stft_f32(float *y, const float *x, const float *window, const size_t *factors, const float *roots, size_t first,
                        size_t last, size_t frames, size_t length, size_t hop, size_t n, float *scratch, float scale) {
  for (size_t count; first < last; first += count) {
    size_t b = first / frames, t = first % frames;
    count = smaller(smaller(last - first, frames - t), LANES);
    take(scratch, x + b * length + t * hop, hop, count, n);
    for (size_t j = 0; j < n; j++) store(scratch + j * LANES, load(scratch + j * LANES) * splat(window[j]));
    half_spectra(y + first * (n + 2), scratch, count, n, factors, roots, scale);
  }
}

EXPORT void tl_irfft_f32(float *y, const float *x, size_t rows, size_t n, const size_t *factors, const float *roots,
                         float *scratch, float scale) {
  float *spectrum = scratch, *z = spectrum + 2 * (n + 2) * LANES;
  const float *of_factors = roots + 2 * (n / 4 + 1);
  for (size_t count; rows; rows -= count, x += count * (n + 2), y += count * n) {
    count = smaller(rows, LANES);
    take(spectrum, x, n + 2, count, n + 2);
    from_half_spectrum(z, spectrum, n / 2, roots);
    give(y, transform(z, spectrum, n / 2, factors, of_factors, 1.0f), count, n, scale);
  }
}

// Of two vectors: every second number, from the first or the second one; and the numbers in turns, their first or second half.
#if LANES == 4
#define EVENS(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define ODDS(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7)
#define LOWS(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGHS(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#elif LANES == 8
#define EVENS(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODDS(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define LOWS(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGHS(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define EVENS(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODDS(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define LOWS(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGHS(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#endif

EXPORT size_t tl_fft_lanes(void) { return LANES; }

static void transform_row(float *y, const float *x, size_t n, const size_t *factors, const float *roots, float sign,
                          float *scratch, float scale) {
  static const size_t of_lanes[] = {4, LANES / 4};
  size_t m = n / LANES;
  float *z = scratch;
  const float *turns = roots, *of_sums = turns + 2 * n, *of_factors = of_sums + 2 * (LANES - 1);
  for (size_t j = 0; j < m; j++) {
    vf a = load(x + 2 * j * LANES), b = load(x + (2 * j + 1) * LANES);
    put(z, j, (complex_vf){EVENS(a, b), ODDS(a, b)});
  }
  z = transform(z, scratch + 2 * n, m, factors, of_factors, sign);
  for (size_t k = 0; k < m; k += LANES) {
    float block[2 * LANES * LANES], turned[2 * LANES * LANES];
    for (size_t i = 0; i < LANES; i++, turns += 2 * LANES) {
      complex_vf a = at(z, k + i);
      vf c = load(turns), s = load(turns + LANES) * splat(-sign);
      put(block, i, k + i ? (complex_vf){a.re * c - a.im * s, a.re * s + a.im * c} : a); // infinite numbers stay so
    }
    transpose(turned, 2 * LANES, block, 2 * LANES, LANES, LANES);
    transpose(turned + LANES, 2 * LANES, block + LANES, 2 * LANES, LANES, LANES);
    const float *sums = transform(turned, block, LANES, of_lanes, of_sums, sign);
    for (size_t l = 0; l < LANES; l++) {
      complex_vf a = times(at(sums, l), scale);
      float *to = y + 2 * (k + m * l);
      store(to, LOWS(a.re, a.im)), store(to + LANES, HIGHS(a.re, a.im));
    }
  }
}

typedef struct {
  float re, im;
} number;

static inline number root_times(const float *root, float sign, number a) {
  return (number){a.re * root[0] + a.im * sign * root[1], a.im * root[0] - a.re * sign * root[1]};
}

EXPORT void tl_fft_row_f32(float *y, const float *x, size_t rows, size_t n, const size_t *factors, const float *roots, int sign,
                           float *scratch, float scale) {
  for (; rows--; x += 2 * n, y += 2 * n) transform_row(y, x, n, factors, roots, (float)sign, scratch, scale);
}

EXPORT void tl_rfft_row_f32(float *y, const float *x, size_t rows, size_t n, const size_t *factors, const float *roots,
                            float *scratch, float scale) {
  size_t half = n / 2;
  for (; rows--; x += n, y += n + 2) {
    transform_row(y, x, half, factors, roots + 2 * (n / 4 + 1), -1.0f, scratch, scale);
    number *z = (number *)y, first = z[0]; // see to_half_spectrum
    z[0] = (number){first.re + first.im, 0.0f}, z[half] = (number){first.re - first.im, 0.0f};
    for (size_t k = 1; 2 * k <= half; k++) {
      number a = z[k], b = z[half - k];
      number even = {0.5f * (a.re + b.re), 0.5f * (a.im - b.im)};
      number odd = root_times(roots + 2 * k, -1.0f, (number){0.5f * (a.im + b.im), 0.5f * (b.re - a.re)});
      z[k] = (number){even.re + odd.re, even.im + odd.im}, z[half - k] = (number){even.re - odd.re, odd.im - even.im};
    }
  }
}

EXPORT void tl_irfft_row_f32(float *y, const float *x, size_t rows, size_t n, const size_t *factors, const float *roots,
                             float *scratch, float scale) {
  size_t half = n / 2;
  number *z = (number *)(scratch + 2 * n);
  for (; rows--; x += n + 2, y += n) {
    const number *in = (const number *)x;
    z[0] = (number){in[0].re + in[half].re, in[0].re - in[half].re}; // see from_half_spectrum
    for (size_t k = 1; 2 * k <= half; k++) {
      number a = in[k], b = in[half - k];
      number even = {a.re + b.re, a.im - b.im}, odd = root_times(roots + 2 * k, 1.0f, (number){a.re - b.re, a.im + b.im});
      z[k] = (number){even.re - odd.im, even.im + odd.re}, z[half - k] = (number){even.re + odd.im, odd.re - even.im};
    }
    transform_row(y, scratch + 2 * n, half, factors, roots + 2 * (n / 4 + 1), 1.0f, scratch, scale);
  }
}
