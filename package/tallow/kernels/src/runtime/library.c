// Queries of the loader before it uses a library.
//   tl_sources    the checksum of the sources it was built from, defined by the build
//   tl_cpu_level  the highest level of the System V ABI whose instructions this CPU has and the operating system saves the
//                 registers of: 3 (AVX2, FMA and others), 4 (AVX-512) if also VNNI, else 1; 0 on another architecture
//   tl_allow_tiles  1 if this CPU has the tiles of AMX for bfloat16 and int8, and the system lets this process use them, which
//                 it is asked for: once for all threads, those of forked processes too. Else 0
//   tl_has_fast_dots  1 if this CPU is AMD's, of level 4, and has the dot products of bfloat16, AVX512-BF16. Else 0: Intel's
//                 multiply as many floats in that time, and linear layers of 128 rows would take 1.2 to 1.5 times as long
#include "runtime/vec.h"

EXPORT uint32_t tl_sources(void) { return TALLOW_SOURCES; }

#if defined _WIN32
int DllMainCRTStartup(void *library, unsigned reason, void *reserved) { // required by Windows
  (void)library, (void)reason, (void)reserved;
  return 1;
}

// Windows grows a stack by one page at a time, so a function with a larger frame first calls this to touch each page. The
// frame has rax bytes; in aarch64 16 x15.
#if defined __x86_64__
__asm__(".globl ___chkstk_ms\n"
        "___chkstk_ms:\n"
        "  pushq %rcx\n"
        "  pushq %rax\n"
        "  leaq 24(%rsp), %rcx\n" // the end of the caller's present frame
        "1:\n"
        "  cmpq $4096, %rax\n"
        "  jb 2f\n"
        "  subq $4096, %rcx\n"
        "  orq $0, (%rcx)\n"
        "  subq $4096, %rax\n"
        "  jmp 1b\n"
        "2:\n"
        "  subq %rax, %rcx\n"
        "  orq $0, (%rcx)\n"
        "  popq %rax\n"
        "  popq %rcx\n"
        "  ret\n");
#elif defined __aarch64__
__asm__(".globl __chkstk\n"
        "__chkstk:\n"
        "  lsl x16, x15, #4\n"
        "  mov x17, sp\n"
        "1:\n"
        "  sub x17, x17, #4096\n"
        "  subs x16, x16, #4096\n"
        "  ldr xzr, [x17]\n"
        "  b.gt 1b\n"
        "  ret\n");
#endif
#endif

#if defined __x86_64__
#include <cpuid.h>

static unsigned saved_registers(void) { // XCR0
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

EXPORT int tl_cpu_level(void) {
  const unsigned fma = 1u << 12, movbe = 1u << 22, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
  const unsigned bmi1 = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8, lzcnt = 1u << 5, vnni = 1u << 11;
  const unsigned avx512f = 1u << 16, avx512dq = 1u << 17, avx512cd = 1u << 28, avx512bw = 1u << 30, avx512vl = 1u << 31;
  const unsigned leaf1 = fma | movbe | osxsave | avx | f16c, leaf7 = bmi1 | avx2 | bmi2;
  const unsigned avx512 = avx512f | avx512dq | avx512cd | avx512bw | avx512vl;
  const unsigned ymm = 0x6, zmm = 0xe6;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & leaf1) != leaf1) return 1;
  unsigned saved = saved_registers();
  if ((saved & ymm) != ymm) return 1;
  if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !(c & lzcnt)) return 1;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & leaf7) != leaf7) return 1;
  return (b & avx512) == avx512 && (c & vnni) && (saved & zmm) == zmm ? 4 : 3;
}

EXPORT int tl_allow_tiles(void) {
#if defined __linux__
  const unsigned bf16 = 1u << 22, tile = 1u << 24, int8 = 1u << 25, registers = 0x60000;
  unsigned a, b, c, d;
  if (tl_cpu_level() < 4 || (saved_registers() & registers) != registers) return 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (~d & (bf16 | tile | int8))) return 0;
  long result; // of arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA): Linux saves tiles only for those who ask
  __asm__ volatile("syscall" : "=a"(result) : "a"(158L), "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory");
  return result == 0;
#else
  return 0;
#endif
}
EXPORT int tl_has_fast_dots(void) {
  unsigned a, b, c, d;
  if (tl_cpu_level() != 4 || !__get_cpuid(0, &a, &b, &c, &d) || b != signature_AMD_ebx) return 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
}
#else
EXPORT int tl_cpu_level(void) { return 0; }
EXPORT int tl_allow_tiles(void) { return 0; }
EXPORT int tl_has_fast_dots(void) { return 0; }
#endif
