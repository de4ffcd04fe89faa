// tl_chain_f32   run a program of elementwise instructions over arrays, one block after the other
//   program  steps instructions of four integers: operation, result, first and second operand. The last three are
//            indices of operands; an operation with one operand ignores the second.
//   operand  its `period` says what it is: WHOLE, an array of all elements, of which a block is read or written in
//            place; TEMPORARY, a block that only the program sees; or p > 0, an array of p elements that repeats, which
//            the program only reads
//   arrays   for each operand, where the address of its array lies
//   scratch  BLOCK floats for each operand and 16 more, to begin at a cache line; contents irrelevant
//   range    elements first to last - 1; the elements before are not read, so parts can run on several threads
//   alias    a result may be an operand of the same instruction; whole arrays must not overlap otherwise
//   special  IEEE 754: NaN stays NaN, in maxima and minima too
//   error    sums, products, quotients, roots, maxima: the bits of NumPy's; exp 1 ulp, tanh 3 ulp, sigmoid and silu 4 ulp
// The registers of a program of a dozen operands take 48 KiB at most, so that they stay in the first or second cache;
// the idea is numexpr's.
#define REGISTERS 4
#include "runtime/vec.h"

#define BLOCK 1024
#define WHOLE 0
#define TEMPORARY (-1)

enum { ADD, SUB, MUL, DIV, MAX, MIN, SQRT, ABS, EXP, TANH, SIGMOID, SILU, RELU };

// NaN if either is. For relaxed SIMD, the compiler turns a comparison and a choice into an instruction that may return either
// operand if one is NaN; others return b.
#if defined __wasm_relaxed_simd__
static inline vf unless_nan(vf y, vf a, vf b) { return select((a != a) | (b != b), a + b, y); }
#else
static inline vf unless_nan(vf y, vf a, vf b) { return (void)b, select(a != a, a, y); }
#endif
static inline vf larger(vf a, vf b) { return unless_nan(select(a > b, a, b), a, b); }
static inline vf less(vf a, vf b) { return unless_nan(select(a < b, a, b), a, b); }

#define EACH(EXPRESSION)                                                            \
  for (size_t i = 0; i < n; i += LANES) {                                           \
    vf p = load(a + (i & of_a)), q = load(b + (i & of_b));                          \
    (void)q;                                                                        \
    store(y + i, EXPRESSION);                                                       \
  }                                                                                 \
  break;

// n is a multiple of LANES; of_a and of_b are 0 for an operand of LANES elements that repeat, and else -1
static void vectors(int operation, float *y, const float *a, const float *b, size_t of_a, size_t of_b, size_t n) {
  switch (operation) {
  case ADD: EACH(p + q)
  case SUB: EACH(p - q)
  case MUL: EACH(p *q)
  case DIV: EACH(p / q)
  case MAX: EACH(larger(p, q))
  case MIN: EACH(less(p, q))
  case SQRT: EACH(__builtin_elementwise_sqrt(p))
  case ABS: EACH((vf)((vi)p & 0x7fffffff))
  case EXP: EACH(exp(p))
  case TANH: EACH(tanh(p))
  case SIGMOID: EACH(sigmoid(p))
  case SILU: EACH(p *sigmoid(p))
  case RELU: EACH(select(p < splat(0.0f), splat(0.0f), p))
  }
}

static void instruction(int operation, float *y, const float *a, const float *b, size_t of_a, size_t of_b, size_t n) {
  size_t whole = n / LANES * LANES, rest = n - whole;
  vectors(operation, y, a, b, of_a, of_b, whole);
  if (rest) {
    float p[LANES], q[LANES];
    store(p, load_part(a + (whole & of_a), rest, 1.0f));
    store(q, load_part(b + (whole & of_b), rest, 1.0f));
    vectors(operation, p, p, q, 0, 0, LANES);
    store_part(y + whole, rest, load(p));
  }
}

// Fill a block with the elements of a repeating array from position `at` on.
static void repeat(float *block, const float *x, size_t period, size_t at, size_t n) {
  size_t from = at % period;
  for (size_t i = 0; i < n;) {
    size_t count = smaller(period - from, n - i);
    for (size_t j = 0; j < count; j++) block[i + j] = x[from + j];
    i += count;
    from = 0;
  }
}

EXPORT void tl_chain_f32(const int32_t *program, float *const *const *arrays, const int64_t *periods, size_t first, size_t last,
                         size_t steps, size_t operands, float *scratch);
void tl_chain_f32(const int32_t *program, float *const *const *arrays, const int64_t *periods, size_t first, size_t last,
                  size_t steps, size_t operands, float *scratch) {
  scratch = (float *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
  // Blocks but one of the last result begin at a cache line; a program may end with a result of its own, which has no array.
  const int32_t result = program[4 * steps - 3];
  const size_t read = periods[result] == WHOLE ? (uintptr_t)*arrays[result] / sizeof(float) : 0;
  for (size_t at = first, n; at < last; at += n) {
    n = smaller(BLOCK - (read + at) % 16, last - at);
    for (size_t k = 0; k < operands; k++) {
      int64_t period = periods[k];
      float *block = scratch + k * BLOCK;
      if (period > 1)
        repeat(block, *arrays[k], (size_t)period, at, n);
      else if (period == 1 && at == first)
        store(block, splat(**arrays[k])); // one number is a vector, which all vectors of a block are computed with
    }
    for (size_t s = 0; s < steps; s++) {
      const int32_t *step = program + 4 * s;
      float *block[3];
      size_t mask[3];
      for (int k = 0; k < 3; k++) {
        int32_t operand = step[k + 1];
        block[k] = periods[operand] == WHOLE ? *arrays[operand] + at : scratch + operand * BLOCK;
        mask[k] = periods[operand] == 1 ? 0 : (size_t)-1;
      }
      instruction(step[0], block[0], block[1], block[2], mask[1], mask[2], n);
    }
  }
}
