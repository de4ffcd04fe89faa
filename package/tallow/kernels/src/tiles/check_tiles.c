// tl_tiles_are_exact   1 if products of tiles, or without AMX of pairs, give the numbers that they must: of small integers, whose sums are exact. The
//                      loader asks before it uses this library: a virtual machine may offer tiles and not keep them
#include "tiles/tiles.h"

#if HAS_DOTS

static inline int number_at(int i, int j) { return (i * 37 + j * 11) % 15 - 7; }

static inline uint16_t as_bf16(int number) {
  union {
    float value;
    uint32_t bits;
  } as = {(float)number};
  return (uint16_t)(as.bits >> 16);
}

EXPORT int tl_tiles_are_exact(void) {
  uint16_t a[TILE][32] __attribute__((aligned(LINE)));
  uint16_t b[TILE][TILE][2] __attribute__((aligned(LINE))); // by pairs of rows, as tiles read it
  int8_t c[TILE][64], d[TILE][TILE][4];
  float floats[TILE][TILE] __attribute__((aligned(LINE)));
#if HAS_TILES
  int32_t integers[TILE][TILE];
#endif
  for (int i = 0; i < TILE; i++)
    for (int j = 0; j < 64; j++) {
      c[i][j] = (int8_t)number_at(i, j), d[j / 4][i][j % 4] = (int8_t)number_at(j, i);
      if (j < 32) a[i][j] = as_bf16(number_at(i, j)), b[j / 2][i][j % 2] = as_bf16(number_at(j, i));
    }
#if HAS_TILES
  configure_tiles(LINE);
  _tile_zero(0), _tile_zero(1);
  _tile_loadd(4, a, LINE), _tile_loadd(6, b, LINE), _tile_loadd(5, c, LINE), _tile_loadd(7, d, LINE);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbssd(1, 5, 7);
  _tile_stored(0, floats, LINE), _tile_stored(1, integers, LINE);
  _tile_release();
#else
  for (int i = 0; i < TILE; i++) {
    sixteen_floats acc = {0};
    for (int p = 0; p < TILE; p++) acc = plus_products(acc, *(sixteen_words *)b[p], (sixteen_words){0} + ((const one_word *)a[i])[p]);
    *(sixteen_floats *)floats[i] = acc;
  }
#endif
  for (int i = 0; i < TILE; i++)
    for (int j = 0; j < TILE; j++) {
      int sums[2] = {0};
      for (int p = 0; p < 64; p++) sums[p / 32] += number_at(i, p) * number_at(p, j);
      if (floats[i][j] != (float)sums[0]) return 0;
#if HAS_TILES
      if (integers[i][j] != sums[0] + sums[1]) return 0;
#endif
    }
  return 1;
}

#endif
