/* The fused tile: pairwise statistic → scalar map → both thin products, a strip at a time.
 *
 * A strip is 16 rows of T by a chunk of its columns, small enough to stay in the first cache
 * while it is made, mapped and multiplied from both sides:
 *
 *     for every chunk of J, for every strip of I:
 *         argument = scale · statistic + shifts       registers of rows × vectors, summed over p
 *         T        = map(argument) · weights          and the sum of its squares
 *         along   += T Ω[J]                           lanes run over J, and are summed up
 *         across  += Tᵀ Ω[I]                          lanes run over J, and stay apart
 *     W[J] += across                                  once a chunk, in double
 *     W[I] += along                                   once per tile, in double
 *
 * Every sum runs in an order that depends on the shape alone.
 */
#include <stdlib.h>

#include "maps.h"

#define STRIP 16
#define CHUNK (SM_DOUBLE ? 192 : 320) /* columns; T takes 20 to 24 kB */
#define STRIDE (CHUNK + PANEL) /* of T; not a power of two, whose rows share cache lines */

/* Registers: ROWS × VECTORS sums of the statistic, PRODUCT_ROWS × PRODUCT_COLUMNS of T Ω[J],
 * ACROSS_COLUMNS × VECTORS of Tᵀ Ω[I]. AVX-512 and NEON have 32 of them, SSE and AVX2 16. */
#if defined(__AVX512F__)
#define ROWS 8
#define VECTORS 2
#define PRODUCT_ROWS 4
#define PRODUCT_COLUMNS 6
#define ACROSS_COLUMNS 8
#elif defined(__AVX2__)
#define ROWS 4
#define VECTORS 2
#define PRODUCT_ROWS 4
#define PRODUCT_COLUMNS 3
#define ACROSS_COLUMNS 5
#elif defined(__aarch64__)
#define ROWS 4
#define VECTORS 4
#define PRODUCT_ROWS 4
#define PRODUCT_COLUMNS 5
#define ACROSS_COLUMNS 5
#else
#define ROWS 2
#define VECTORS 4
#define PRODUCT_ROWS 4
#define PRODUCT_COLUMNS 2
#define ACROSS_COLUMNS 2
#endif
#define AT_ONCE (VECTORS / PARTS) /* panels that the registers hold */

struct strip {
    size_t rows, columns, panels; /* of this strip; panels = columns / PANEL, rounded up */
    real *T;                      /* STRIP × STRIDE */
};

INLINE size_t smaller(size_t one, size_t other) { return one < other ? one : other; }

/* Where vector v of a group of panels begins; `size` numbers a panel. */
INLINE size_t place(int v, size_t size) { return v / PARTS * size + v % PARTS * LANES; }

/* The arguments of ROWS rows and a few vectors of columns. */
INLINE void argue(const struct tile *tile, const enum statistic statistic, const int vectors,
                  const real *left, const real *right, const real *left_shift,
                  const real *right_shift, real *T) {
    const size_t size = tile->features * PANEL;
    vec sums[ROWS][VECTORS];
    UNROLL for (int r = 0; r < ROWS; r++)
        UNROLL for (int v = 0; v < vectors; v++) sums[r][v] = (vec){0};
    for (size_t k = 0; k < tile->features; k++) {
        vec y[VECTORS];
        UNROLL for (int v = 0; v < vectors; v++) y[v] = load(right + place(v, size) + k * PANEL);
        UNROLL for (int r = 0; r < ROWS; r++) {
            vec x = splat(left[k * PANEL + r]);
            UNROLL for (int v = 0; v < vectors; v++) {
                if (statistic == DOT)
                    sums[r][v] += x * y[v];
                else
                    sums[r][v] += magnitude(x - y[v]);
            }
        }
    }
    const vec scale = splat((real)tile->scale);
    UNROLL for (int v = 0; v < vectors; v++) {
        vec shift = load(right_shift + v * LANES);
        UNROLL for (int r = 0; r < ROWS; r++)
            store(T + r * STRIDE + v * LANES, scale * sums[r][v] + (shift + left_shift[r]));
    }
}

INLINE void argue_strip(const struct tile *tile, const enum statistic statistic,
                        const struct strip *strip, const real *left, const real *right,
                        const real *left_shift, const real *right_shift) {
    const size_t size = tile->features * PANEL;
    for (size_t r = 0; r < strip->rows; r += ROWS) {
        const real *rows = left + r / PANEL * size + r % PANEL;
        real *T = strip->T + r * STRIDE;
        size_t q = 0;
        for (; q + AT_ONCE <= strip->panels; q += AT_ONCE)
            argue(tile, statistic, VECTORS, rows, right + q * size, left_shift + r,
                  right_shift + q * PANEL, T + q * PANEL);
        if (AT_ONCE > 1)
            for (; q < strip->panels; q++)
                argue(tile, statistic, PARTS, rows, right + q * size, left_shift + r,
                      right_shift + q * PANEL, T + q * PANEL);
    }
}

/* The same from a statistic that is given row by row. */
INLINE void argue_given(const struct tile *tile, const struct strip *strip, const real *given,
                        const real *left_shift, const real *right_shift) {
    const vec scale = splat((real)tile->scale);
    for (size_t r = 0; r < strip->rows; r++) {
        for (size_t j = 0; j < strip->columns; j += LANES) {
            const real *from = given + r * tile->columns + j;
            size_t count = strip->columns - j;
            vec statistic = count < LANES ? load_some(from, count) : load(from);
            vec shift = load(right_shift + j) + left_shift[r];
            store(strip->T + r * STRIDE + j, scale * statistic + shift);
        }
    }
}

INLINE vec mapped(vec argument, const enum map map, unsigned degree) {
    return map == EXP2    ? exp2_of(argument)
           : map == TANH  ? tanh_of(argument)
           : map == POWER ? power_of(argument, degree)
                          : argument;
}

/* T from its arguments, in place; zeros behind the last column. Returns the sum of squares. */
INLINE double map_strip(const struct tile *tile, const enum map map, const struct strip *strip,
                        const real *left_weight, const real *right_weight) {
    double total = 0;
    for (size_t r = 0; r < strip->rows; r++) {
        real *T = strip->T + r * STRIDE;
        vec squares = {0};
        for (size_t j = 0; j < strip->panels * PANEL; j += LANES) {
            vec t = mapped(load(T + j), map, tile->degree);
            if (left_weight) t = t * left_weight[r] * load(right_weight + j);
            if (__builtin_expect(j + LANES > strip->columns, 0))
                t = j < strip->columns ? load_some((real *)&t, strip->columns - j) : (vec){0};
            store(T + j, t);
            squares += t * t;
        }
        real sum = 0;
        add_lane_sums(&sum, &squares, 1);
        total += (double)sum;
    }
    return total;
}

INLINE double map_strip_as_asked(const struct tile *tile, const struct strip *strip,
                                 const real *left_weight, const real *right_weight) {
    switch (tile->map) {
    case EXP2: return map_strip(tile, EXP2, strip, left_weight, right_weight);
    case TANH: return map_strip(tile, TANH, strip, left_weight, right_weight);
    case POWER: return map_strip(tile, POWER, strip, left_weight, right_weight);
    default: return map_strip(tile, IDENTITY, strip, left_weight, right_weight);
    }
}

/* along += T Ω[J] for PRODUCT_ROWS rows and a few columns of Ω. */
INLINE void multiply(const struct strip *strip, const real *T, const int columns,
                     const real *omega, size_t width, real *along) {
    vec sums[PRODUCT_COLUMNS][PRODUCT_ROWS];
    UNROLL for (int c = 0; c < columns; c++)
        UNROLL for (int r = 0; r < PRODUCT_ROWS; r++) sums[c][r] = (vec){0};
    for (size_t q = 0; q < strip->panels; q++, omega += width * PANEL, T += PANEL) {
        UNROLL for (int v = 0; v < PARTS; v++) {
            vec w[PRODUCT_COLUMNS];
            UNROLL for (int c = 0; c < columns; c++) w[c] = load(omega + c * PANEL + v * LANES);
            UNROLL for (int r = 0; r < PRODUCT_ROWS; r++) {
                vec t = load(T + r * STRIDE + v * LANES);
                UNROLL for (int c = 0; c < columns; c++) sums[c][r] += t * w[c];
            }
        }
    }
    UNROLL for (int c = 0; c < columns; c++)
        add_lane_sums(along + c * PANEL, sums[c], PRODUCT_ROWS);
}

/* across += Tᵀ Ω[I] for a few vectors of columns of T and a few columns of Ω. */
INLINE void multiply_across(const struct strip *strip, const real *T, const int vectors,
                            const int columns, const real *omega, size_t width, real *across) {
    vec sums[ACROSS_COLUMNS][VECTORS];
    UNROLL for (int c = 0; c < columns; c++)
        UNROLL for (int v = 0; v < vectors; v++) sums[c][v] = (vec){0};
    for (size_t first = 0; first < strip->rows; first += PANEL, omega += width * PANEL) {
        size_t rows = smaller(strip->rows - first, PANEL);
        for (size_t r = 0; r < rows; r++, T += STRIDE) {
            vec t[VECTORS];
            UNROLL for (int v = 0; v < vectors; v++) t[v] = load(T + v * LANES);
            UNROLL for (int c = 0; c < columns; c++) {
                vec w = splat(omega[c * PANEL + r]);
                UNROLL for (int v = 0; v < vectors; v++) sums[c][v] += w * t[v];
            }
        }
    }
    UNROLL for (int c = 0; c < columns; c++) {
        UNROLL for (int v = 0; v < vectors; v++) {
            real *to = across + place(v, width * PANEL) + c * PANEL;
            store(to, load(to) + sums[c][v]);
        }
    }
}

/* Calls CALL(columns) with a constant, from 1 to 8. */
#define WITH_CONSTANT(columns, CALL) \
    switch (columns) {               \
    case 1: CALL(1); break;          \
    case 2: CALL(2); break;          \
    case 3: CALL(3); break;          \
    case 4: CALL(4); break;          \
    case 5: CALL(5); break;          \
    case 6: CALL(6); break;          \
    case 7: CALL(7); break;          \
    case 8: CALL(8); break;          \
    }

/* The end of the next of the fewest parts of at most `most` that are equal to within one. */
INLINE size_t part_end(size_t start, size_t end, size_t most) {
    size_t left = end - start, parts = (left + most - 1) / most;
    return start + left / parts + (left % parts != 0);
}

static void multiply_strip(const struct strip *strip, const real *omega, size_t width,
                           real *along) {
    for (size_t c = 0, next; c < width; c = next) {
        next = part_end(c, width, PRODUCT_COLUMNS);
        for (size_t r = 0; r < strip->rows; r += PRODUCT_ROWS) {
            const real *T = strip->T + r * STRIDE, *w = omega + c * PANEL;
            real *to = along + (r / PANEL * width + c) * PANEL + r % PANEL;
#define CALL(n) \
    if (n <= PRODUCT_COLUMNS) multiply(strip, T, n <= PRODUCT_COLUMNS ? n : 1, w, width, to)
            WITH_CONSTANT(next - c, CALL)
#undef CALL
        }
    }
}

static void multiply_strip_across(const struct strip *strip, const real *omega, size_t width,
                                  real *across) {
    for (size_t c = 0, next; c < width; c = next) {
        next = part_end(c, width, ACROSS_COLUMNS);
        for (size_t q = 0; q < strip->panels; q += AT_ONCE) {
            const real *T = strip->T + q * PANEL, *w = omega + c * PANEL;
            real *to = across + (q * width + c) * PANEL;
#define CALL_WITH(n, vectors) \
    if (n <= ACROSS_COLUMNS)  \
    multiply_across(strip, T, vectors, n <= ACROSS_COLUMNS ? n : 1, w, width, to)
#define CALL(n) CALL_WITH(n, VECTORS)
#define CALL_LAST(n) CALL_WITH(n, PARTS)
            if (q + AT_ONCE <= strip->panels)
                WITH_CONSTANT(next - c, CALL)
            else
                WITH_CONSTANT(next - c, CALL_LAST)
        }
    }
}

/* A strip whose arguments are made by `statistic`; a constant, so that each has its own loops. */
INLINE void argue_as_asked(const struct tile *tile, const struct strip *strip, size_t i, size_t j,
                           const real *left_shift, const real *right_shift) {
    const real *left = tile->left, *right = tile->right;
    if (tile->statistic == GIVEN) {
        argue_given(tile, strip, left + i * tile->columns + j, left_shift, right_shift);
        return;
    }
    left += i * tile->features; /* i and j are multiples of PANEL */
    right += j * tile->features;
    if (tile->statistic == DOT)
        argue_strip(tile, DOT, strip, left, right, left_shift, right_shift);
    else
        argue_strip(tile, MANHATTAN, strip, left, right, left_shift, right_shift);
}

/* W += sums, which are panels: PANEL rows of W by its columns. */
static void add_panels(const real *panels, size_t rows, size_t width, double *W) {
    for (size_t r = 0; r < rows; r++) {
        const real *from = panels + r / PANEL * width * PANEL + r % PANEL;
        for (size_t c = 0; c < width; c++) W[r * width + c] += (double)from[c * PANEL];
    }
}

static int compute_tile(struct tile *tile) {
    const size_t width = tile->width;
    const real *left_omega = tile->left_omega, *right_omega = tile->right_omega;
    const real *left_weight = tile->left_weight, *right_weight = tile->right_weight;
    /* T; what it adds to W[I] and to W[J]; shifts and weights with zeros behind their ends. All
     * sizes are multiples of a cache line. */
    const size_t sizes[] = {STRIP * STRIDE, (tile->rows + STRIP - 1) / STRIP * STRIP * width,
                            CHUNK * width,  CHUNK, CHUNK, STRIP};
    real *space[6];
    size_t numbers = 0;
    for (int i = 0; i < 6; i++) numbers += sizes[i];
    space[0] = aligned_alloc(PANEL_BYTES, numbers * sizeof(real));
    if (!space[0]) return -1;
    memset(space[0], 0, numbers * sizeof(real));
    for (int i = 1; i < 6; i++) space[i] = space[i - 1] + sizes[i - 1];
    real *along = space[1], *across = space[2], *shifts = space[3], *weights = space[4];
    real *row_shifts = space[5];
    struct strip strip = {.T = space[0]};

    tile->squares = 0;
    for (size_t j = 0; j < tile->columns; j += CHUNK) {
        strip.columns = smaller(tile->columns - j, CHUNK);
        strip.panels = (strip.columns + PANEL - 1) / PANEL;
        memset(across, 0, (CHUNK * width + 2 * CHUNK) * sizeof(real));
        memcpy(shifts, (const real *)tile->right_shift + j, strip.columns * sizeof(real));
        if (right_weight) memcpy(weights, right_weight + j, strip.columns * sizeof(real));
        for (size_t i = 0; i < tile->rows; i += STRIP) {
            strip.rows = smaller(tile->rows - i, STRIP);
            memset(row_shifts, 0, STRIP * sizeof(real));
            memcpy(row_shifts, (const real *)tile->left_shift + i, strip.rows * sizeof(real));
            argue_as_asked(tile, &strip, i, j, row_shifts, shifts);
            const size_t first = i > j ? i : j;
            const size_t end = smaller(i + strip.rows, j + strip.columns);
            if (tile->zero_distance)
                for (size_t d = first; d < end; d++) strip.T[(d - i) * STRIDE + d - j] = 0;
            tile->squares += map_strip_as_asked(tile, &strip, left_weight ? left_weight + i : NULL,
                                                weights);
            if (tile->diagonal)
                for (size_t d = first; d < end; d++)
                    tile->diagonal[d] = (double)strip.T[(d - i) * STRIDE + d - j];
            if (tile->values)
                for (size_t r = 0; r < strip.rows; r++)
                    memcpy((real *)tile->values + (i + r) * tile->columns + j,
                           strip.T + r * STRIDE, strip.columns * sizeof(real));
            multiply_strip(&strip, right_omega + j * width, width, along + i * width);
            if (tile->right_W)
                multiply_strip_across(&strip, left_omega + i * width, width, across);
        }
        if (tile->right_W)
            add_panels(across, strip.columns, width, tile->right_W + j * width);
    }
    add_panels(along, tile->rows, width, tile->left_W);
    free(space[0]);
    return 0;
}

static void pack(const void *from, size_t count, size_t features, void *to) {
    const real *rows = from;
    real *panel = to;
    for (size_t i = 0; i < count; i += PANEL, panel += features * PANEL) {
        size_t present = count - i < PANEL ? count - i : PANEL;
        for (size_t k = 0; k < features; k++)
            for (size_t r = 0; r < PANEL; r++)
                panel[k * PANEL + r] = r < present ? rows[(i + r) * features + k] : 0;
    }
}

static void map_numbers(enum map map, unsigned degree, void *numbers, size_t count) {
    real *at = numbers;
    for (size_t j = 0; j < count; j += LANES) {
        size_t here = count - j < LANES ? count - j : LANES;
        vec value = load_some(at + j, here);
        value = map == EXP2    ? mapped(value, EXP2, degree)
                : map == TANH  ? mapped(value, TANH, degree)
                : map == POWER ? mapped(value, POWER, degree)
                               : value;
        store_some(at + j, value, here);
    }
}

void SM_NAME(transform)(void *matrix, unsigned bits, size_t columns);
void SM_NAME(transform_together)(void *matrix, unsigned bits, size_t columns, struct progress *);
void SM_NAME(sparse_dots)(const struct sparse *left, const struct sparse *right, size_t rows,
                          size_t columns, void *out);
#if SM_DOUBLE
int SM_NAME(nearest)(const struct nearest *);
#endif

const struct kernels SM_NAME(kernels) = {
    .level = SM_LEVEL,
    .tile = compute_tile,
    .pack = pack,
    .map = map_numbers,
    .transform = SM_NAME(transform),
    .transform_together = SM_NAME(transform_together),
    .sparse_dots = SM_NAME(sparse_dots),
#if SM_DOUBLE
    .nearest = SM_NAME(nearest),
#endif
};
