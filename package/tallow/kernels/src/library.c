// What the loader asks of a library before it uses it.
//   tl_sources    the checksum of the sources it was built from, given by the build
//   tl_cpu_level  3 if this CPU has all of x86-64-v3 (System V ABI: AVX2, FMA and company), else 1; 0 on another
//                 architecture. The operating system's part is checked too: it must save the registers of AVX
#include "vec.h"

EXPORT uint32_t tl_sources(void) { return TALLOW_SOURCES; }

#if defined _WIN32
int DllMainCRTStartup(void *library, unsigned reason, void *reserved) { // Windows wants an entry point of every library
  (void)library, (void)reason, (void)reserved;
  return 1;
}
#endif

#if defined __x86_64__
#include <cpuid.h>

static int saves_avx_registers(void) {
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & 6) == 6;
}

EXPORT int tl_cpu_level(void) {
  const unsigned fma = 1u << 12, movbe = 1u << 22, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
  const unsigned bmi1 = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8, lzcnt = 1u << 5;
  const unsigned leaf1 = fma | movbe | osxsave | avx | f16c, leaf7 = bmi1 | avx2 | bmi2;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & leaf1) != leaf1 || !saves_avx_registers()) return 1;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & leaf7) != leaf7) return 1;
  if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !(c & lzcnt)) return 1;
  return 3;
}
#else
EXPORT int tl_cpu_level(void) { return 0; }
#endif
