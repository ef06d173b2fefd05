/* What the compiled kernels offer, whatever the processor and the precision.
 *
 * tile.c, hadamard.c, sparse.c and nearest.c are compiled once for every precision and every level
 * of the processor; each copy fills one `struct kernels`. module.c checks arguments and picks a copy
 * at run time. gram.c, which has no use for vectors, is compiled once.
 */
#ifndef SKETCHMEANS_NATIVE_H
#define SKETCHMEANS_NATIVE_H

#include <stddef.h>

/* Bytes of a panel's row: 16 samples in float, 8 in double. The layout is the same at every
 * level, so what is packed once serves whichever copy runs. */
#define PANEL_BYTES 64

enum statistic { DOT, MANHATTAN, GIVEN };
enum map { IDENTITY, POWER, EXP2, TANH, MAPS };

/* One tile T = K[I, J] and what is added from it to W.
 *
 * Panels hold a block of rows feature by feature: panel q has rows q·16 … q·16 + 15 (8 in double)
 * as features × 16 numbers, rows that do not exist as zeros. Omega is packed in the same way, its
 * columns in the place of the features.
 *
 * T[i, j] = map(scale · statistic(i, j) + left_shift[i] + right_shift[j]), times both weights.
 */
struct tile {
    enum statistic statistic;
    enum map map;
    unsigned degree; /* of POWER */
    double scale;
    size_t rows, columns, features, width;
    const void *left;  /* panels of I; the statistic itself, rows × columns, if it is GIVEN */
    const void *right; /* panels of J */
    const void *left_shift, *right_shift;
    const void *left_weight, *right_weight; /* may be NULL, both */
    const void *left_omega;                 /* NULL where T serves once */
    const void *right_omega;
    double *left_W;    /* += T right_omega */
    double *right_W;   /* += Tᵀ left_omega; NULL where T serves once */
    double *diagonal;  /* = the diagonal of T; NULL where it is not one of K */
    void *values;      /* = T, rows × columns; NULL where only its products are wanted */
    int zero_distance; /* whether the argument of the diagonal is zero, whatever rounding says */
    double squares;    /* out: the sum of squares of T */
};

/* A sparse matrix by its rows: row i has numbers starts[i] … starts[i + 1] − 1. */
struct sparse {
    const int *starts, *places; /* places: their columns */
    const void *values;
};

/* Rows whose nearest anchors are looked for: some more by products, the nearest by differences. */
struct nearest {
    size_t rows, features, anchors;
    size_t stride;          /* features, filled up to whole panels */
    size_t looked_at, kept; /* 1 ≤ kept ≤ looked_at ≤ anchors */
    const double *data;     /* rows × features */
    const double *panels;   /* anchors, packed */
    const double *halves;   /* ½‖a‖² of the anchors */
    const double *points;   /* anchors × stride, zeros behind the features */
    int *out;               /* rows × kept: places of anchors, rising */
};

/* Sparse rows f, and the rows of G that Σ f fᵀ is added to, on and right of the diagonal. */
struct gram {
    size_t rows, stored; /* numbers of each row */
    size_t width;        /* of G */
    size_t first, last;  /* rows of G: from first up to before last */
    const int *columns;  /* rows × stored, rising in each row */
    const double *values;
    double *G; /* width × width */
};

/* 0, or -1 where columns do not rise or are none of G. */
int gram_of_rows(const struct gram *);

/* What threads that share one piece of work have begun and done of it. NOTE: zeros at first, and for
 * one piece of work only: with anything else a call may wait forever, or do nothing. */
struct progress {
    unsigned begun, done;
};

struct kernels {
    const char *level;
    /* 0, or -1 where memory was lacking. */
    int (*tile)(struct tile *);
    void (*pack)(const void *rows, size_t count, size_t features, void *panels);
    void (*map)(enum map, unsigned degree, void *numbers, size_t count);
    /* In place on the columns of a matrix of 2^bits rows. */
    void (*transform)(void *matrix, unsigned bits, size_t columns);
    /* The same by all threads that call it with one `progress`, of eight rows or more. It is done
     * when every call has returned; one call suffices. */
    void (*transform_together)(void *matrix, unsigned bits, size_t columns, struct progress *);
    /* out = left · right, rows × columns numbers. */
    void (*sparse_dots)(const struct sparse *left, const struct sparse *right, size_t rows,
                        size_t columns, void *out);
    /* 0, or -1 where memory was lacking. In double only. */
    int (*nearest)(const struct nearest *);
};

#endif
