// Shared memory whose size is set at launch, asynchronous copies into it, and the order of kernels that overlap.

#pragma once

// The shared memory of a launch, at a multiple of 1024 bytes, which wgmma.cuh requires.
#ifdef TALLOW_EMULATED
#define DYNAMIC_SHARED(name) unsigned char* name = emulated::shared
#else
#define DYNAMIC_SHARED(name) extern __shared__ __align__(1024) unsigned char name[]
#endif

// Start to copy 16 bytes, both addresses multiples of 16; or to write 16 bytes of zeros if `wanted` is false.
__device__ __forceinline__ void copy_async_16(void* shared_to, const void* from, bool wanted = true) {
#ifdef TALLOW_EMULATED
    emulated::copy_later(shared_to, from, 16, wanted);
#elif __CUDA_ARCH__ >= 800
    unsigned to = (unsigned)__cvta_generic_to_shared(shared_to);
    int size = wanted ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(size) : "memory");
#else
    *(int4*)shared_to = wanted ? *(const int4*)from : make_int4(0, 0, 0, 0);
#endif
}

// Group the copies that were started since the last commit.
__device__ __forceinline__ void copy_async_commit() {
#ifdef TALLOW_EMULATED
    emulated::commit_copies();
#elif __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Wait until at most the last `Pending` groups of this thread are unfinished.
template <int Pending> __device__ __forceinline__ void copy_async_wait() {
#ifdef TALLOW_EMULATED
    emulated::finish_copies(Pending);
#elif __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
#endif
}

// Let the next kernel of the stream start now, if it is launched to overlap with this one.
__device__ __forceinline__ void start_next_kernel() {
#if !defined(TALLOW_EMULATED) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Wait until the kernels before this one have finished, if it is launched to overlap with them. Before, it must not read
// or write anything that they write, nor write anything that they read.
__device__ __forceinline__ void wait_for_previous_kernels() {
#if !defined(TALLOW_EMULATED) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
