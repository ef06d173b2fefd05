/* The fast Walsh–Hadamard transform of columns, in place.
 *
 * Rows are combined 8 or 16 at a time in registers, so that the data are read a third or a
 * quarter as often as by one butterfly a bit. The recursion runs depth first: a block of rows
 * that fits a cache is finished there, whatever the sizes of the caches are.
 */
#include "vectors.h"

#if defined(__AVX512F__) || defined(__aarch64__)
#define RADIX_BITS 4 /* 16 vectors and more fit the registers */
#else
#define RADIX_BITS 3
#endif
/* Rows that lie a power of two apart share a set of the cache; it holds 8 lines. */
#define FAR_BITS 3
#define FAR_BYTES 4096

/* One vector of 2^bits rows, `step` numbers apart. */
INLINE void combine(real *at, size_t step, const int bits, size_t count) {
    vec rows[1 << RADIX_BITS];
    UNROLL for (int i = 0; i < 1 << bits; i++)
        rows[i] = count < LANES ? load_some(at + i * step, count) : load(at + i * step);
    UNROLL for (int bit = 0; bit < bits; bit++) {
        UNROLL for (int i = 0; i < 1 << bits; i++) {
            if (i >> bit & 1) continue;
            vec one = rows[i], other = rows[i | 1 << bit];
            rows[i] = one + other;
            rows[i | 1 << bit] = one - other;
        }
    }
    UNROLL for (int i = 0; i < 1 << bits; i++) {
        if (count < LANES)
            store_some(at + i * step, rows[i], count);
        else
            store(at + i * step, rows[i]);
    }
}

/* `rows` groups of 2^bits rows: row r with those `step` numbers behind it, and so on. */
INLINE void combine_rows(real *at, size_t rows, size_t stride, size_t step, const int bits,
                         size_t count) {
    for (size_t r = 0; r < rows; r++, at += stride) {
        size_t j = 0;
        for (; j + LANES <= count; j += LANES) combine(at + j, step, bits, LANES);
        if (j < count) combine(at + j, step, bits, count - j);
    }
}

static void transform_rows(real *at, unsigned bits, size_t stride, size_t count) {
    if (bits == 0) return;
    unsigned most = (stride * sizeof(real) << bits) > FAR_BYTES * 16 ? FAR_BITS : RADIX_BITS;
    unsigned now = bits < most ? bits : most, left = bits - now;
    if (left)
        for (size_t i = 0; i < (size_t)1 << now; i++)
            transform_rows(at + (i * stride << left), left, stride, count);
    size_t rows = (size_t)1 << left, step = stride << left;
    switch (now) {
    case 1: combine_rows(at, rows, stride, step, 1, count); break;
    case 2: combine_rows(at, rows, stride, step, 2, count); break;
    case 3: combine_rows(at, rows, stride, step, 3, count); break;
    default: combine_rows(at, rows, stride, step, RADIX_BITS, count); break;
    }
}

/* The lanes of every vector of a single column. */
INLINE vec combine_lanes(vec x) {
#if LANES == 16
    const vec sign1 = {1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1};
    const vec sign2 = {1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1};
    const vec sign4 = {1, 1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1};
    const vec sign8 = {1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1};
    x = SHUFFLE(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14) + x * sign1;
    x = SHUFFLE(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13) + x * sign2;
    x = SHUFFLE(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11) + x * sign4;
    return SHUFFLE(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7) + x * sign8;
#elif LANES == 8
    const vec sign1 = {1, -1, 1, -1, 1, -1, 1, -1}, sign2 = {1, 1, -1, -1, 1, 1, -1, -1};
    const vec sign4 = {1, 1, 1, 1, -1, -1, -1, -1};
    x = SHUFFLE(x, x, 1, 0, 3, 2, 5, 4, 7, 6) + x * sign1;
    x = SHUFFLE(x, x, 2, 3, 0, 1, 6, 7, 4, 5) + x * sign2;
    return SHUFFLE(x, x, 4, 5, 6, 7, 0, 1, 2, 3) + x * sign4;
#elif LANES == 4
    const vec sign1 = {1, -1, 1, -1}, sign2 = {1, 1, -1, -1};
    x = SHUFFLE(x, x, 1, 0, 3, 2) + x * sign1;
    return SHUFFLE(x, x, 2, 3, 0, 1) + x * sign2;
#else
    const vec sign1 = {1, -1};
    return SHUFFLE(x, x, 1, 0) + x * sign1;
#endif
}

void SM_NAME(transform)(void *matrix, unsigned bits, size_t columns) {
    real *at = matrix;
    size_t numbers = columns << bits;
    if (columns == 1 && numbers >= LANES) { /* a row of LANES for every LANES rows of one */
        for (size_t j = 0; j < numbers; j += LANES) store(at + j, combine_lanes(load(at + j)));
        while (columns < LANES) columns *= 2, bits--;
    } else {
        /* Neighbouring rows are combined until a row fills vectors. */
        while (columns < 2 * LANES && bits) {
            for (size_t row = 0; row < numbers; row += 2 * columns)
                for (size_t j = 0; j < columns; j++) {
                    real one = at[row + j], other = at[row + columns + j];
                    at[row + j] = one + other;
                    at[row + columns + j] = one - other;
                }
            columns *= 2, bits--;
        }
    }
    transform_rows(at, bits, columns, columns);
}

void SM_NAME(combine_eighths)(void *numbers, size_t eighth, size_t first, size_t count) {
    combine_rows((real *)numbers + first, 1, 0, eighth, 3, count);
}
