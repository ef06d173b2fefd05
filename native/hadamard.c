/* The fast Walsh–Hadamard transform of columns, in place.
 *
 * Rows are combined 8 or 16 at a time in registers, so that the data are read a third or a
 * quarter as often as by one butterfly a bit. The recursion runs depth first: a block of rows
 * that fits a cache is finished there, whatever the sizes of the caches are.
 */
#include <sched.h>

#include "vectors.h"

#if defined(__AVX512F__) || defined(__aarch64__)
#define RADIX_BITS 4 /* 16 vectors and more fit the registers */
#else
#define RADIX_BITS 3
#endif
/* Blocks that lie a power of two apart share a set of the cache, which holds 8 lines: from this size
 * on their parts are combined 8 at a time. */
#define FAR_BYTES 65536
#define FAR_BITS 3
/* A block of this size is begun, and widened, in the innermost cache. */
#define NEAR_BYTES 16384
/* What threads that share a transform take one after the other: eighths of the rows, each
 * transformed by itself, then shares of what combines the eighths. */
#define EIGHTHS 8
#define SHARES 64
#define LINE (64 / sizeof(real)) /* of the cache: two threads seldom write to the same one */

/* One vector of 2^bits blocks, `step` numbers apart. */
INLINE void combine(real *at, size_t step, const int bits, size_t count) {
    vec part[1 << RADIX_BITS];
    UNROLL for (int i = 0; i < 1 << bits; i++)
        part[i] = count < LANES ? load_some(at + i * step, count) : load(at + i * step);
    UNROLL for (int bit = 0; bit < bits; bit++) {
        UNROLL for (int i = 0; i < 1 << bits; i++) {
            if (i >> bit & 1) continue;
            vec one = part[i], other = part[i | 1 << bit];
            part[i] = one + other;
            part[i | 1 << bit] = one - other;
        }
    }
    UNROLL for (int i = 0; i < 1 << bits; i++) {
        if (count < LANES)
            store_some(at + i * step, part[i], count);
        else
            store(at + i * step, part[i]);
    }
}

/* `count` numbers of 2^bits blocks, `step` numbers apart. */
INLINE void combine_blocks(real *at, size_t step, const int bits, size_t count) {
    size_t j = 0;
    for (; j + LANES <= count; j += LANES) combine(at + j, step, bits, LANES);
    if (j < count) combine(at + j, step, bits, count - j);
}

/* The lanes of a vector that holds rows of `columns` numbers, a power of two. */
INLINE vec combine_lanes(vec x, const size_t columns) {
#define COMBINE(distance, sign, ...) \
    if (columns <= distance) x = SHUFFLE(x, x, __VA_ARGS__) + x * sign
#if LANES == 16
    const vec sign1 = {1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1};
    const vec sign2 = {1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1};
    const vec sign4 = {1, 1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1};
    const vec sign8 = {1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1};
    COMBINE(1, sign1, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    COMBINE(2, sign2, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    COMBINE(4, sign4, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    COMBINE(8, sign8, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
#elif LANES == 8
    const vec sign1 = {1, -1, 1, -1, 1, -1, 1, -1}, sign2 = {1, 1, -1, -1, 1, 1, -1, -1};
    const vec sign4 = {1, 1, 1, 1, -1, -1, -1, -1};
    COMBINE(1, sign1, 1, 0, 3, 2, 5, 4, 7, 6);
    COMBINE(2, sign2, 2, 3, 0, 1, 6, 7, 4, 5);
    COMBINE(4, sign4, 4, 5, 6, 7, 0, 1, 2, 3);
#elif LANES == 4
    const vec sign1 = {1, -1, 1, -1}, sign2 = {1, 1, -1, -1};
    COMBINE(1, sign1, 1, 0, 3, 2);
    COMBINE(2, sign2, 2, 3, 0, 1);
#else
    const vec sign1 = {1, -1};
    COMBINE(1, sign1, 1, 0);
#endif
#undef COMBINE
    return x;
}

INLINE void combine_vectors(real *at, size_t numbers, const size_t columns) {
    for (size_t j = 0; j < numbers; j += LANES) store(at + j, combine_lanes(load(at + j), columns));
}

/* Neighbouring rows of `columns` numbers, until they are rows of `wide` numbers. */
static void widen(real *at, size_t numbers, size_t columns, size_t wide) {
    if (wide == LANES) {
        switch (columns) {
        case 1: combine_vectors(at, numbers, 1); break;
        case 2: combine_vectors(at, numbers, 2); break;
        case 4: combine_vectors(at, numbers, 4); break;
        case 8: combine_vectors(at, numbers, 8); break;
        }
        return;
    }
    for (; columns < wide; columns *= 2)
        for (size_t row = 0; row < numbers; row += 2 * columns)
            for (size_t j = 0; j < columns; j++) {
                real one = at[row + j], other = at[row + columns + j];
                at[row + j] = one + other;
                at[row + columns + j] = one - other;
            }
}

/* Rows of `wide` numbers, each of which was several rows of `columns` if that is less. */
static void transform_rows(real *at, unsigned bits, size_t columns, size_t wide) {
    if (columns < wide && (wide * sizeof(real) << bits) <= NEAR_BYTES) {
        widen(at, wide << bits, columns, wide);
        columns = wide;
    }
    if (bits == 0) return;
    unsigned most = (wide * sizeof(real) << bits) >= FAR_BYTES ? FAR_BITS : RADIX_BITS;
    unsigned passes = (bits + most - 1) / most, now = (bits + passes - 1) / passes, left = bits - now;
    size_t step = wide << left;
    if (left || columns < wide)
        for (size_t i = 0; i < (size_t)1 << now; i++)
            transform_rows(at + i * step, left, columns, wide);
    switch (now) {
    case 1: combine_blocks(at, step, 1, step); break;
    case 2: combine_blocks(at, step, 2, step); break;
    case 3: combine_blocks(at, step, 3, step); break;
    default: combine_blocks(at, step, RADIX_BITS, step); break;
    }
}

void SM_NAME(transform)(void *matrix, unsigned bits, size_t columns) {
    if (columns == 0) return;
    size_t wide = columns, enough = LANES % columns ? 2 * LANES : LANES;
    for (; bits && wide < enough; bits--) wide *= 2;
    transform_rows(matrix, bits, columns, wide);
}

void SM_NAME(transform_together)(void *matrix, unsigned bits, size_t columns,
                                 struct progress *progress) {
    real *numbers = matrix;
    size_t eighth = columns << (bits - 3), share = (eighth / SHARES / LINE + 1) * LINE;
    for (;;) {
        unsigned task = __atomic_fetch_add(&progress->begun, 1, __ATOMIC_RELAXED);
        if (task >= EIGHTHS + SHARES) return;
        if (task < EIGHTHS) {
            SM_NAME(transform)(numbers + task * eighth, bits - 3, columns);
            __atomic_fetch_add(&progress->done, 1, __ATOMIC_RELEASE);
            continue;
        }
        /* All eighths have been taken, by threads that stop at nothing: this ends. */
        while (__atomic_load_n(&progress->done, __ATOMIC_ACQUIRE) < EIGHTHS) sched_yield();
        size_t first = (task - EIGHTHS) * share;
        if (first >= eighth) return;
        combine_blocks(numbers + first, eighth, 3, eighth - first < share ? eighth - first : share);
    }
}
