// Images with the channels of a pixel adjacent, as the layers of a network for images pass them on:
//
//   tl_channels_last_f32            y[n, i, o] = act(bias[o] + Σ w[o, c, k] x[n, i · stride + k · dilation - before, c] + plus[n, i, o])
//   tl_channels_last_depthwise_f32  the same with a group per channel, and one output of each
//   tl_channels_last_max_f32        y[n, i, c] = max x[n, i · stride + k · dilation - before, c]; NaN if one is
//
//   shape   see `sizes`, and after them the number of an `action`. x (samples, height, width, groups · channels), y and plus
//           (samples, out_h, out_w, groups · outputs); i, k stand for two indices each. Elements outside of x count as 0, and
//           for maxima not at all
//   w       as tl_channels_last_pack writes it, from (groups · outputs, channels, kernel_h, kernel_w):
//           (groups, panels of PAIR outputs, kernel_h, kernel_w, channels, PAIR), zeros for outputs that do not exist;
//           depthwise (kernel_h, kernel_w, groups)
//   bias    (groups · outputs,) or null; plus or null
//   limits  {low, high, scale, shift}: low ≤ high, and not NaN
//   range   rows of y, of samples · out_h, from `first` to `last`: calls for different ranges write to different memory, and
//           may run concurrently
//   layout  all contiguous      align  none needed
//   alias   y overlaps nothing
//   scratch tl_channels_last_scratch(shape) floats, contents irrelevant
//   special act(x) is scale · f(x) + shift, with f one of: nothing; clamp(x, low, high), which keeps NaN; hard-swish,
//           x · clamp(x / 6 + 1/2, 0, 1); silu
//   error   before act ≤ (K / 2 + 2) ulp of the sum of the magnitudes of the K products; silu 4 ulp more
//
// Nothing is gathered: vectors are along the outputs, an element of x is broadcast to one as it is read, and for each point of y
// and each position of the window a table says where in x it lies, or that it is outside of x. Some points, whose windows stay
// in L2, have the same table for all outputs, whose weights are read from one end to the other. On one core of a Zen 4, where
// AVX-512 makes at most 118 GFLOP/s: 256 -> 64 channels of 56 x 56 107, 3 x 3 of 256 channels of 14 x 14 109.
#include "convolution/places.h"

enum {
#if defined __AVX512F__
  ROWS = 12, // 24 sums, two vectors of weights and an element of x, of 32 registers
#elif defined __wasm__
  ROWS = 4, // engines keep only this many sums in registers
#else
  ROWS = 6, // 12 sums, two vectors of weights and an element of x: sixteen registers
#endif
  FEWER = ROWS - 2,   // points of the last tiles, so that few of them are empty
  PAIR = 2 * LANES,   // outputs of a tile
  POINTS = 120,       // of one table, at most; a multiple of all sizes of tiles
  PLACES = 4096,      // of one table
  WINDOWS = 1 << 16,  // floats of x that one table leads to, about: in L2
  OUTSIDE = LANES,    // what follows the zeros, for the last vector
  PAGE = 1024,        // floats; what is a multiple of this apart is in one set of L1
  LINE = 16,          // floats of a line of L1
};

typedef enum { NOTHING, CLAMP, HARD_SWISH, SILU } action;

typedef struct {
  sizes n;
  size_t action;
} call;

static size_t taps_of(const sizes *n) { return n->kernel_h * n->kernel_w; }

static size_t panels_of(const sizes *n) { return (n->outputs + PAIR - 1) / PAIR; }

EXPORT size_t tl_channels_last_packed(const size_t *shape) { // floats of the weights
  const sizes *n = (const sizes *)shape;
  return n->groups * panels_of(n) * taps_of(n) * n->channels * PAIR;
}

EXPORT __attribute__((minsize)) void tl_channels_last_pack(float *packed, const float *w, const size_t *shape) {
  const sizes *n = (const sizes *)shape;
  const size_t taps = taps_of(n), depth = n->channels * taps;
  for (size_t g = 0; g < n->groups; g++)
    for (size_t first = 0; first < n->outputs; first += PAIR)
      for (size_t t = 0; t < taps; t++)
        for (size_t c = 0; c < n->channels; c++)
          for (size_t o = first; o < first + PAIR; o++)
            *packed++ = o < n->outputs ? w[(g * n->outputs + o) * depth + c * taps + t] : 0.0f;
}

// Points of one table, at most.
static size_t points_of(const sizes *n) {
  size_t points = smaller(PLACES / taps_of(n), WINDOWS / (n->groups * n->channels)) / ROWS * ROWS;
  points = points < ROWS ? ROWS : points;
  return points < POINTS ? points : POINTS;
}

// Whether the points of a tile compete for the same sets of L1, so that they are copied to other distances first.
static int collides(const sizes *n) { return taps_of(n) == 1 && n->groups * n->channels % PAGE == 0; }

EXPORT size_t tl_channels_last_scratch(const size_t *shape) {
  const sizes *n = (const sizes *)shape;
  const size_t places = points_of(n) * taps_of(n), pixel = n->groups * n->channels;
  return places * (sizeof(char *) / sizeof(float)) + 2 + pixel + OUTSIDE + (collides(n) ? points_of(n) * (pixel + LINE) : 0);
}

// Where each position of the windows of some points lies; see places.h.
typedef struct {
  const char **places;
  const float *outside;
  size_t points;
  float *copy;
} table;

static __attribute__((noinline)) table new_table(float *scratch, const sizes *n, float outside) {
  table t = {.places = (const char **)rounded_up((uintptr_t)scratch, sizeof(char *)), .points = points_of(n)};
  float *row = (float *)(t.places + t.points * taps_of(n));
  for (size_t i = 0; i < n->groups * n->channels + OUTSIDE; i++) row[i] = outside;
  t.outside = row, t.copy = row + n->groups * n->channels + OUTSIDE;
  return t;
}

static void fill(const table *t, const float *x, const sizes *n, size_t first, size_t count) {
  const size_t pixel = n->groups * n->channels;
  fill_places(t->places, t->points, (const char *)x, (const char *)t->outside, pixel * sizeof *x, n, first, count);
  if (collides(n))
    for (size_t p = 0; p < count; p++) {
      float *to = t->copy + p * (pixel + LINE);
      for (size_t c = 0; c < pixel; c++) to[c] = ((const float *)t->places[p])[c];
      t->places[p] = (const char *)to;
    }
}

// What is the same for all tiles of some points.
typedef struct {
  const char *const *places;
  size_t points, taps, channels, offset; // of the group in a pixel
  const float *w, *bias, *plus, *limits; // of the panel; each may be null but the first and the last
  float *y;
  size_t pixel, width, action; // from one point of y to the next; outputs of the panel
  int is_simple;               // a clamp to `low` and `high` alone follows the sum with `plus`
  float low, high;
} panel;

// Apply what follows the sums to some vectors.
static __attribute__((noinline)) void act(vf *x, size_t count, size_t action, const float *limits) {
  if (action == CLAMP) {
    const vf low = splat(limits[0]), high = splat(limits[1]);
    for (size_t i = 0; i < count; i++) {
      const vf above = select(x[i] < low, low, x[i]);
      x[i] = or_nan(select(above > high, high, above), x[i]);
    }
  } else if (action == HARD_SWISH)
    for (size_t i = 0; i < count; i++)
      x[i] *= clamp(fma(x[i], splat(1.0f / 6.0f), splat(0.5f)), splat(0.0f), splat(1.0f));
  else if (action == SILU)
    for (size_t i = 0; i < count; i++) x[i] *= sigmoid(x[i]);
  if (limits[2] != 1.0f || limits[3] != 0.0f)
    for (size_t i = 0; i < count; i++) x[i] = fma(x[i], splat(limits[2]), splat(limits[3]));
}

// Write sums to y, two vectors for each of some points, or one if that is all.
static __attribute__((noinline)) void finish(const panel *p, size_t first, size_t count, vf *sums) {
  const size_t vectors = p->width > LANES ? 2 : 1, rest = p->width - (vectors - 1) * LANES;
  const size_t start = first * p->pixel;
  if (p->is_simple && rest == LANES) { // one pass
    const vf low = splat(p->low), high = splat(p->high);
    for (size_t i = 0, at = start; i < count; i++, at += p->pixel)
      for (size_t v = 0; v < vectors; v++) {
        const vf x = *sums++, whole = p->plus ? x + load(p->plus + at + v * LANES) : x, above = select(whole < low, low, whole);
        store(p->y + at + v * LANES, or_nan(select(above > high, high, above), whole));
      }
    return;
  }
  if (p->plus)
    for (size_t i = 0, at = start; i < count; i++, at += p->pixel)
      for (size_t v = 0; v < vectors; v++)
        sums[i * vectors + v] += load_up_to(p->plus + at + v * LANES, v + 1 < vectors ? LANES : rest);
  act(sums, count * vectors, p->action, p->limits);
  if (rest == LANES) {
    for (size_t i = 0, at = start; i < count; i++, at += p->pixel)
      for (size_t v = 0; v < vectors; v++) store(p->y + at + v * LANES, *sums++);
    return;
  }
  for (size_t i = 0, at = start; i < count; i++, at += p->pixel)
    for (size_t v = 0; v < vectors; v++) store_up_to(p->y + at + v * LANES, v + 1 < vectors ? LANES : rest, *sums++);
}

static inline __attribute__((always_inline)) void tile(const panel *p, size_t first, size_t count, int rows, int vectors) {
  vf acc[ROWS][2];
  const float *w = p->w;
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
    const vf start = load(p->bias + v * LANES);
#pragma clang loop unroll(full)
    for (int i = 0; i < rows; i++) acc[i][v] = start;
  }
  const char *const *place = p->places + first;
  for (size_t t = 0; t < p->taps; t++, place += p->points) {
    const float *x[ROWS];
#pragma clang loop unroll(full)
    for (int i = 0; i < rows; i++) x[i] = (const float *)place[(size_t)i < count ? i : 0] + p->offset;
#pragma clang loop unroll(disable)
    for (size_t c = 0; c < p->channels; c++, w += PAIR)
#pragma clang loop unroll(full)
      for (int i = 0; i < rows; i++)
#pragma clang loop unroll(full)
        for (int v = 0; v < vectors; v++) acc[i][v] = fma(splat(x[i][c]), load(w + v * LANES), acc[i][v]);
  }
  vf sums[ROWS * 2];
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++)
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) sums[i * vectors + v] = acc[i][v];
  finish(p, first, count, sums);
}

#define TILE(NAME, rows, vectors)                                                                                        \
  static __attribute__((noinline)) void NAME(const panel *p, size_t first, size_t count) {                               \
    tile(p, first, count, rows, vectors);                                                                                \
  }
TILE(all_wide, ROWS, 2)
TILE(all_narrow, ROWS, 1)
TILE(one, 1, 2)
#if defined __AVX512F__
TILE(fewer_wide, FEWER, 2)
#else
#define fewer_wide all_wide // of which fewer are empty anyway
#endif

// Note what follows the sums.
static void set_action(panel *p, const call *own, const float *limits) {
  p->limits = limits, p->action = own->action;
  p->is_simple = own->action <= CLAMP && limits[2] == 1.0f && limits[3] == 0.0f;
  p->low = own->action ? limits[0] : -__builtin_inff(), p->high = own->action ? limits[1] : __builtin_inff();
}

static void panel_of_points(const panel *p, size_t count) {
  for (size_t i = 0, rows; i < count; i += rows) {
    const size_t left = count - i, tiles = (left + ROWS - 1) / ROWS;
    if (left == 1)
      rows = 1, one(p, i, 1);
    else if (p->width <= LANES)
      rows = smaller(ROWS, left), all_narrow(p, i, rows);
    else if (left <= tiles * FEWER)
      rows = smaller(FEWER, left), fewer_wide(p, i, rows);
    else
      rows = smaller(ROWS, left), all_wide(p, i, rows);
  }
}

EXPORT void tl_channels_last_f32(float *y, const float *x, const float *w, const float *bias, const float *plus,
                                 const float *limits, size_t first, size_t last, const size_t *shape, float *scratch) {
  const call *own = (const call *)shape;
  const sizes *n = &own->n;
  const table t = new_table(scratch, n, 0.0f);
  const size_t pixel = n->groups * n->outputs, end = last * n->out_w, depth = taps_of(n) * n->channels * PAIR;
  for (size_t point = first * n->out_w, count; point < end; point += count) {
    count = smaller(t.points, end - point);
    fill(&t, x, n, point, count);
    const float *weights = w;
    float start[PAIR];
    for (size_t g = 0; g < n->groups; g++)
      for (size_t o = 0; o < n->outputs; o += PAIR, weights += depth) {
        const size_t channel = g * n->outputs + o, at = point * pixel + channel;
        panel p = {.places = t.places, .points = t.points, .taps = taps_of(n), .channels = n->channels, .w = weights,
                   .y = y + at, .pixel = pixel};
        set_action(&p, own, limits);
        p.offset = g * n->channels, p.width = smaller(PAIR, n->outputs - o);
        for (size_t i = 0; i < PAIR; i++) start[i] = bias && i < p.width ? bias[channel + i] : 0.0f;
        p.bias = start, p.plus = plus ? plus + at : 0;
        panel_of_points(&p, count);
      }
  }
}

enum { SOME = FEWER < 6 ? FEWER : 6 }; // points at once

// Some adjacent points for one or two vectors of channels: sums of products, or maxima where there are no weights.
static inline __attribute__((always_inline)) void along(const panel *p, size_t first, size_t c, size_t left, int rows,
                                                       int vectors, int is_max) {
  vf acc[SOME][2];
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
    const float *bias = p->bias ? p->bias + c + v * LANES : 0;
    const vf start = is_max ? splat(-__builtin_inff()) : bias ? load_up_to(bias, left) : splat(0.0f);
#pragma clang loop unroll(full)
    for (int i = 0; i < rows; i++) acc[i][v] = start;
  }
  const char *const *place = p->places + first;
  size_t w = c; // of p->w, which maxima have not
  for (size_t t = 0; t < p->taps; t++, place += p->points, w += p->channels) {
    vf weight[2];
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++)
      if (!is_max) weight[v] = load_up_to(p->w + w + v * LANES, left);
#pragma clang loop unroll(full)
    for (int i = 0; i < rows; i++)
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++) {
        const vf x = load_up_to((const float *)place[i] + c + v * LANES, left);
        if (is_max) {
          const vi chosen = (x > acc[i][v]) | (x != x);
          acc[i][v] = or_nan(or_nan(select(chosen, x, acc[i][v]), acc[i][v]), x);
        } else
          acc[i][v] = fma(weight[v], x, acc[i][v]);
      }
  }
  if (p->is_simple && !p->plus && left == LANES) {
    float *y = p->y + first * p->pixel + c;
    const vf low = splat(p->low), high = splat(p->high);
#pragma clang loop unroll(full)
    for (int i = 0; i < rows; i++, y += p->pixel)
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++) {
        const vf above = select(acc[i][v] < low, low, acc[i][v]);
        store(y + v * LANES, or_nan(select(above > high, high, above), acc[i][v]));
      }
    return;
  }
  vf sums[SOME * 2];
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++)
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) sums[i * vectors + v] = acc[i][v];
  panel own = *p;
  own.y += c, own.plus = p->plus ? p->plus + c : 0, own.width = (vectors - 1) * LANES + left;
  finish(&own, first, (size_t)rows, sums);
}

#define ALONG(NAME, rows, vectors, is_max)                                                                               \
  static __attribute__((noinline)) void NAME(const panel *p, size_t first, size_t c, size_t left) {                      \
    along(p, first, c, rows > 1 ? LANES : left, rows, vectors, is_max);                                                  \
  }
ALONG(wide_sums, SOME, 2, 0)
ALONG(some_sums, SOME, 1, 0)
ALONG(one_sum, 1, 1, 0)
ALONG(some_maxima, SOME, 1, 1)
ALONG(one_maximum, 1, 1, 1)

static void channelwise(const panel *p, size_t count, int is_max) {
  const size_t pixel = p->pixel;
  for (size_t i = 0, rows; i < count; i += rows) {
    rows = count - i >= SOME && pixel >= LANES ? SOME : 1;
    for (size_t c = 0, many; c < pixel; c += many) {
      many = LANES;
      if (rows == 1)
        (is_max ? one_maximum : one_sum)(p, i, c, smaller(LANES, pixel - c));
      else if (!is_max && pixel - c >= PAIR)
        wide_sums(p, i, c, LANES), many = PAIR;
      else
        (is_max ? some_maxima : some_sums)(p, i, smaller(c, pixel - LANES), LANES); // the last one overlaps another
    }
  }
}

static __attribute__((noinline)) void by_channel(float *y, const float *x, const float *w, const float *bias,
                                                 const float *plus, const float *limits, size_t first, size_t last,
                                                 const size_t *shape, float *scratch, int is_max) {
  const call *own = (const call *)shape;
  const sizes *n = &own->n;
  const table t = new_table(scratch, n, is_max ? -__builtin_inff() : 0.0f);
  const size_t pixel = n->groups * n->outputs, end = last * n->out_w;
  panel p = {.places = t.places, .points = t.points, .taps = taps_of(n), .channels = pixel, .w = w, .bias = bias,
             .pixel = pixel, .width = pixel};
  set_action(&p, own, limits);
  for (size_t point = first * n->out_w, count; point < end; point += count) {
    count = smaller(t.points, end - point);
    fill(&t, x, n, point, count);
    p.y = y + point * pixel, p.plus = plus ? plus + point * pixel : 0;
    channelwise(&p, count, is_max);
  }
}

EXPORT void tl_channels_last_depthwise_f32(float *y, const float *x, const float *w, const float *bias, const float *plus,
                                           const float *limits, size_t first, size_t last, const size_t *shape,
                                           float *scratch) {
  by_channel(y, x, w, bias, plus, limits, first, last, shape, scratch, 0);
}

EXPORT void tl_channels_last_max_f32(float *y, const float *x, size_t first, size_t last, const size_t *shape,
                                     float *scratch) {
  const float limits[] = {0.0f, 0.0f, 1.0f, 0.0f};
  by_channel(y, x, 0, 0, 0, limits, first, last, shape, scratch, 1);
}
