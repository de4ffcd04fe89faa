// tl_fft_f32       y[r, k] = scale · Σ_j x[r, j] exp(sign · 2πi j k / n), of complex numbers
// tl_rfft_f32      real x, sign -1, k ≤ n/2: the other coefficients are the conjugates of these
// tl_irfft_f32     real y, sign 1, from the coefficients of x with k ≤ n/2
//   source  Stockham's FFT in mixed radix: Van Loan, Computational Frameworks for the Fast Fourier Transform, 1992, 1.7.
//           Two neighbours of real numbers are one complex number of a transform of half the length: the same, 4.3.
//   layout  complex numbers are pairs of floats; x and y row-major, rows contiguous: (rows, n), half spectra (rows, n/2 + 1)
//   factors of n, for real numbers of n/2, each 2, 3, 4 or 5
//   roots   for real numbers first exp(-2πi k / n) for k ≤ n/4; then for each factor r of n or n/2, where m · r is left of
//           it: exp(-2πi p k / (m r)) for each p < m, and 1 ≤ k < r
//   scratch tl_fft_scratch(n) floats, contents irrelevant
//   align   none needed       length  n ≥ 1; of real numbers n is even
//   alias   y and x do not overlap
//   error   ≤ 1e-6 · the norm of the row, for n ≤ 4096. Coefficients of a row with an infinite number are infinite or NaN
//   threads parts of the rows have the bits of the whole
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

// Take some rows of `width` floats, a lane for each; and give them back.
static void take(float *z, const float *x, size_t rows, size_t width) {
  if (rows < LANES) clear(z, width * LANES);
  transpose(z, LANES, x, width, rows, width);
}

static void give(float *y, float *z, size_t rows, size_t width, float scale) {
  for (size_t i = 0; i < width * LANES; i += LANES) store(z + i, load(z + i) * splat(scale));
  transpose(y, width, z, LANES, width, rows);
}

EXPORT void tl_fft_f32(float *y, const float *x, size_t rows, size_t n, const size_t *factors, const float *roots, int sign,
                       float *scratch, float scale) {
  float *z = scratch, *other = z + 2 * (n + 2) * LANES;
  for (size_t count; rows; rows -= count, x += count * 2 * n, y += count * 2 * n) {
    count = smaller(rows, LANES);
    take(z, x, count, 2 * n);
    give(y, transform(z, other, n, factors, roots, (float)sign), count, 2 * n, scale);
  }
}

EXPORT void tl_rfft_f32(float *y, const float *x, size_t rows, size_t n, const size_t *factors, const float *roots,
                        float *scratch, float scale) {
  float *z = scratch, *other = z + 2 * (n + 2) * LANES;
  const float *of_factors = roots + 2 * (n / 4 + 1);
  for (size_t count; rows; rows -= count, x += count * n, y += count * (n + 2)) {
    count = smaller(rows, LANES);
    take(z, x, count, n);
    float *done = transform(z, other, n / 2, factors, of_factors, -1.0f), *spectrum = done == z ? other : z;
    to_half_spectrum(spectrum, done, n / 2, roots);
    give(y, spectrum, count, n + 2, scale);
  }
}

EXPORT void tl_irfft_f32(float *y, const float *x, size_t rows, size_t n, const size_t *factors, const float *roots,
                         float *scratch, float scale) {
  float *spectrum = scratch, *z = spectrum + 2 * (n + 2) * LANES;
  const float *of_factors = roots + 2 * (n / 4 + 1);
  for (size_t count; rows; rows -= count, x += count * (n + 2), y += count * n) {
    count = smaller(rows, LANES);
    take(spectrum, x, count, n + 2);
    from_half_spectrum(z, spectrum, n / 2, roots);
    give(y, transform(z, spectrum, n / 2, factors, of_factors, 1.0f), count, n, scale);
  }
}
