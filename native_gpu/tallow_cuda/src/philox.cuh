// Philox 4x32-10: four random words for each counter value, independent of the order of requests.
//
// Source: Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"

#pragma once

struct Words4 {
    unsigned at[4];
};

__device__ __forceinline__ Words4 philox(Words4 counter, unsigned long long key) {
    Words4 c = counter;
    unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        unsigned long long first = 0xd2511f53ull * c.at[0], second = 0xcd9e8d57ull * c.at[2];
        c = {{(unsigned)(second >> 32) ^ c.at[1] ^ k0, (unsigned)second, (unsigned)(first >> 32) ^ c.at[3] ^ k1,
              (unsigned)first}};
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    return c;
}
