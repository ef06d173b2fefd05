/* Vectors of one register: GCC's and Clang's vector extensions, so that one source serves SSE,
 * AVX2, AVX-512 and NEON. The build defines SM_DOUBLE (0 or 1), SM_LEVEL and SM_SUFFIX. */
#ifndef SKETCHMEANS_VECTORS_H
#define SKETCHMEANS_VECTORS_H

#if !defined(__GNUC__)
#error "the native tile needs the vector extensions of GCC or Clang; the NumPy engine does not"
#endif

#include <stdint.h>
#include <string.h>

#include "native.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#if SM_DOUBLE
typedef double real;
typedef int64_t whole;
#define LANES (VECTOR_BYTES / 8)
#define PANEL (PANEL_BYTES / 8)
#else
typedef float real;
typedef int32_t whole;
#define LANES (VECTOR_BYTES / 4)
#define PANEL (PANEL_BYTES / 4)
#endif
#define PARTS (PANEL / LANES) /* vectors in a row of a panel */

/* name_v4_float and the like: what the files of one copy call each other. */
#define PASTE_EXPANDED(name, suffix) name##suffix
#define PASTE(name, suffix) PASTE_EXPANDED(name, suffix)
#define SM_NAME(name) PASTE(name, SM_SUFFIX)

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

typedef real vec __attribute__((vector_size(VECTOR_BYTES)));
typedef whole ints __attribute__((vector_size(VECTOR_BYTES)));
typedef real loose __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));

INLINE vec load(const real *from) { return *(const loose *)from; }
INLINE void store(real *to, vec value) { *(loose *)to = value; }
INLINE vec splat(real value) { return value - (vec){0}; }

/* The first `count` lanes from memory, which may end there; zeros behind them. */
INLINE vec load_some(const real *from, size_t count) {
    real lanes[LANES] = {0};
    memcpy(lanes, from, count * sizeof(real));
    return load(lanes);
}

INLINE void store_some(real *to, vec value, size_t count) {
    memcpy(to, &value, count * sizeof(real));
}

INLINE vec select_from(ints mask, vec yes, vec no) {
    return (vec)(((ints)yes & mask) | ((ints)no & ~mask));
}

/* Both keep a NaN in `value`: the intrinsics return their second operand then. */
#if !defined(__AVX512F__) /* which needs no lower limit */
INLINE vec at_least(vec value, real limit) {
#if defined(__AVX2__) && SM_DOUBLE
    return (vec)_mm256_max_pd((__m256d)splat(limit), (__m256d)value);
#elif defined(__AVX2__)
    return (vec)_mm256_max_ps((__m256)splat(limit), (__m256)value);
#else
    return select_from(value < splat(limit), splat(limit), value);
#endif
}
#endif

INLINE vec at_most(vec value, real limit) {
#if defined(__AVX512F__) && SM_DOUBLE
    return (vec)_mm512_min_pd((__m512d)splat(limit), (__m512d)value);
#elif defined(__AVX512F__)
    return (vec)_mm512_min_ps((__m512)splat(limit), (__m512)value);
#elif defined(__AVX2__) && SM_DOUBLE
    return (vec)_mm256_min_pd((__m256d)splat(limit), (__m256d)value);
#elif defined(__AVX2__)
    return (vec)_mm256_min_ps((__m256)splat(limit), (__m256)value);
#else
    return select_from(value > splat(limit), splat(limit), value);
#endif
}

INLINE vec magnitude(vec value) {
#if SM_DOUBLE
    return (vec)((ints)value & INT64_MAX);
#else
    return (vec)((ints)value & INT32_MAX);
#endif
}

#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (ints){__VA_ARGS__})
#endif

/* Sums of neighbours: those of a, then those of b. */
INLINE vec pair_sums(vec a, vec b) {
#if LANES == 16
    return SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) +
           SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#elif LANES == 8
    return SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14) + SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#elif LANES == 4
    return SHUFFLE(a, b, 0, 2, 4, 6) + SHUFFLE(a, b, 1, 3, 5, 7);
#else
    return SHUFFLE(a, b, 0, 2) + SHUFFLE(a, b, 1, 3);
#endif
}

/* Add to `to` the sum of the lanes of each of `count` vectors, a power of two; `sums` is used up. */
INLINE void add_lane_sums(real *to, vec *sums, const int count) {
    int vectors = count;
    UNROLL for (int lanes = LANES; lanes > 1; lanes /= 2) {
        if (vectors == 1) {
            sums[0] = pair_sums(sums[0], sums[0]);
            continue;
        }
        vectors /= 2;
        UNROLL for (int i = 0; i < vectors; i++)
            sums[i] = pair_sums(sums[2 * i], sums[2 * i + 1]);
    }
    real out[16];
    UNROLL for (int i = 0; i < vectors; i++) store(out + i * LANES, sums[i]);
    UNROLL for (int i = 0; i < count; i++) to[i] += out[i];
}

#endif
