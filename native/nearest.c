/* The nearest anchors of rows: some more than are asked for by products, the nearest by differences.
 *
 * Lanes run over rows, a panel of eight at a time:
 *
 *     D[j]    = ½‖a_j‖² − ⟨x, a_j⟩      registers of anchors × rows, summed over the features
 *     least   = the smallest D of each panel of anchors; the `looked_at` smallest of them, sorted
 *     limit   = the last of those        as many anchors, and hardly more, have D ≤ limit
 *     squares = ‖x − a‖²                 of the `looked_at` smallest D: these keep their digits
 *
 * An anchor that was not looked at has ‖x − a‖² = ‖x‖² + 2D with D no smaller than the last one that
 * was, up to rounding. Where that could be as near as the last one kept, as among groups that lie far
 * apart beside their own width or on a lattice, all anchors are looked at: the result is exact.
 *
 * No step but the last two branches on the numbers of one row. What is kept stays in the order of
 * the anchors, and of equal numbers the first are kept. A row meets the same operations whatever
 * rows stand beside it. D that are NaN count as infinite, so that all numbers have an order.
 */
#include <math.h>
#include <stdlib.h>

#include "vectors.h"

/* Anchors whose sums the registers hold, PARTS vectors each. */
#if defined(__AVX512F__)
#define AT_ONCE 8
#elif defined(__AVX2__) || defined(__aarch64__)
#define AT_ONCE 4
#else
#define AT_ONCE 2
#endif
#define CACHED (1 << 16) /* numbers of anchors that are multiplied at a time; of at least … */
#define NARROW 64        /* … so many features. Where there are more, … */
#define STRIP 8          /* … so many panels of rows take turns. */
#define FEW 8            /* numbers too many that are dropped one by one */

/* Both give `other` where one of the two is NaN. */
INLINE vec smaller_of(vec one, vec other) {
#if defined(__AVX512F__)
    return (vec)_mm512_min_pd((__m512d)one, (__m512d)other);
#elif defined(__AVX2__)
    return (vec)_mm256_min_pd((__m256d)one, (__m256d)other);
#elif defined(__SSE2__)
    return (vec)_mm_min_pd((__m128d)one, (__m128d)other);
#else
    return select_from(one < other, one, other);
#endif
}

INLINE vec larger_of(vec one, vec other) {
#if defined(__AVX512F__)
    return (vec)_mm512_max_pd((__m512d)one, (__m512d)other);
#elif defined(__AVX2__)
    return (vec)_mm256_max_pd((__m256d)one, (__m256d)other);
#elif defined(__SSE2__)
    return (vec)_mm_max_pd((__m128d)one, (__m128d)other);
#else
    return select_from(one > other, one, other);
#endif
}

/* A bit for each lane that is true. */
INLINE unsigned bits_of(ints mask) {
#if defined(__AVX512F__)
    return _mm512_movepi64_mask((__m512i)mask);
#elif defined(__AVX2__)
    return (unsigned)_mm256_movemask_pd((__m256d)mask);
#elif defined(__SSE2__)
    return (unsigned)_mm_movemask_pd((__m128d)mask);
#else
    unsigned bits = 0;
    UNROLL for (int l = 0; l < LANES; l++) bits |= ((unsigned)mask[l] & 1) << l;
    return bits;
#endif
}

struct hit {
    int place;     /* of an anchor */
    unsigned rows; /* of a panel that it is near: a bit each */
};

/* Where a strip of rows is worked on; m and p are anchors and features, padded to whole panels. */
struct space {
    real *panels;  /* rows, packed */
    real *rows;    /* rows × p, zeros behind the features */
    real *D;       /* a panel of rows after the other, m × PANEL */
    vec *least;    /* a panel of rows after the other, looked_at × PARTS */
    real *numbers; /* of the candidates of one row */
    real *sorted;  /* a copy of them */
    struct hit *hits;
    int *places; /* candidates of a panel: PANEL × m */
    real *halves; /* infinite behind the anchors */
    real largest; /* ½‖a‖² */
};

/* D less the products of some features: a panel of rows and AT_ONCE anchors. `halves` begin D. */
INLINE void subtract(const real *rows, const real *anchors, size_t features, const real *halves,
                     real *D) {
    vec sums[AT_ONCE][PARTS];
    UNROLL for (int j = 0; j < AT_ONCE; j++)
        UNROLL for (int v = 0; v < PARTS; v++)
            sums[j][v] = halves ? splat(halves[j]) : load(D + j * PANEL + v * LANES);
    for (size_t k = 0; k < features; k++, rows += PANEL, anchors += PANEL) {
        vec x[PARTS];
        UNROLL for (int v = 0; v < PARTS; v++) x[v] = load(rows + v * LANES);
        UNROLL for (int j = 0; j < AT_ONCE; j++) {
            vec a = splat(anchors[j]);
            UNROLL for (int v = 0; v < PARTS; v++) sums[j][v] -= a * x[v];
        }
    }
    UNROLL for (int j = 0; j < AT_ONCE; j++)
        UNROLL for (int v = 0; v < PARTS; v++)
            store(D + j * PANEL + v * LANES, smaller_of(sums[j][v], splat(INFINITY)));
}

/* Sort the smallest D of a panel of anchors into `least`, for each row; the largest falls out. */
INLINE void insert(const real *D, vec *least, size_t count) {
    vec next[PARTS];
    UNROLL for (int v = 0; v < PARTS; v++) {
        next[v] = load(D + v * LANES);
        UNROLL for (int j = 1; j < PANEL; j++)
            next[v] = smaller_of(next[v], load(D + j * PANEL + v * LANES));
    }
    for (size_t i = 0; i < count; i++, least += PARTS)
        UNROLL for (int v = 0; v < PARTS; v++) {
            vec here = least[v];
            least[v] = smaller_of(here, next[v]);
            next[v] = larger_of(here, next[v]);
        }
}

/* D and `least` of a strip of rows. Some features at a time, so that the anchors stay in the cache
 * while one panel of rows after the other is multiplied by them. */
static void multiply(const struct nearest *job, const struct space *space, size_t rows, size_t m,
                     size_t chunk, size_t sorted) {
    for (size_t i = 0; i < (rows + PANEL - 1) / PANEL * sorted * PARTS; i++)
        space->least[i] = splat(INFINITY);
    for (size_t k = 0; k < job->features; k += chunk) {
        const size_t left = job->features - k, features = left < chunk ? left : chunk;
        for (size_t r = 0; r < rows; r += PANEL)
            for (size_t j = 0; j < m; j += PANEL) {
                const real *anchors = job->panels + j * job->features + k * PANEL;
                real *D = space->D + r * m + j * PANEL;
                UNROLL for (int t = 0; t < PANEL; t += AT_ONCE)
                    subtract(space->panels + r * job->features + k * PANEL, anchors + t, features,
                             k ? NULL : space->halves + j + t, D + t * PANEL);
                if (left == features)
                    insert(D, space->least + r / PANEL * sorted * PARTS, sorted);
            }
    }
}

/* The number that has `rank` others before it where all are sorted; puts them in another order. */
static real ranked(real *numbers, size_t count, size_t rank) {
    size_t low = 0, high = count - 1;
    while (low < high) {
        const real pivot = numbers[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;;) {
            while (numbers[i] < pivot) i++;
            while (pivot < numbers[j]) j--;
            if (i >= j) break;
            const real swapped = numbers[i];
            numbers[i++] = numbers[j], numbers[j--] = swapped;
        }
        if (rank <= j) /* j < high: the pivot is not the last */
            high = j;
        else
            low = j + 1;
    }
    return numbers[rank];
}

/* Keep the `kept` smallest numbers and their places, in their order; of equal ones the first. */
static void keep_smallest(real *numbers, int *places, size_t count, size_t kept, real *sorted) {
    if (count <= kept + FEW) {
        for (; count > kept; count--) {
            size_t largest = 0;
            for (size_t i = 1; i < count; i++)
                largest = numbers[i] >= numbers[largest] ? i : largest;
            for (size_t i = largest; i + 1 < count; i++)
                numbers[i] = numbers[i + 1], places[i] = places[i + 1];
        }
        return;
    }
    memcpy(sorted, numbers, count * sizeof(real));
    const real limit = ranked(sorted, count, kept - 1);
    size_t equal = kept, to = 0;
    for (size_t i = 0; i < count; i++) equal -= numbers[i] < limit;
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] > limit || (numbers[i] == limit && !equal)) continue;
        equal -= numbers[i] == limit;
        numbers[to] = numbers[i], places[to++] = places[i];
    }
}

/* ‖x − a‖² of some anchors. */
static void square(const real *x, const real *points, size_t stride, const int *places,
                   size_t count, real *squares) {
    for (size_t first = 0; first < count; first += LANES) {
        vec sums[PANEL];
        UNROLL for (int j = 0; j < LANES; j++) {
            const size_t i = first + j < count ? first + j : first;
            const real *a = points + places[i] * stride;
            UNROLL for (int v = 0; v < PARTS; v++) sums[j * PARTS + v] = (vec){0};
            for (size_t k = 0; k < stride; k += PANEL)
                UNROLL for (int v = 0; v < PARTS; v++) {
                    vec away = load(x + k + v * LANES) - load(a + k + v * LANES);
                    sums[j * PARTS + v] += away * away;
                }
        }
        real parts[PANEL] = {0};
        add_lane_sums(parts, sums, PANEL);
        /* By halves, as the lanes are: the same sum for any length of the vectors. */
        UNROLL for (int half = 1; half < PARTS; half *= 2)
            UNROLL for (int i = 0; i < PANEL; i += 2 * half) parts[i] += parts[i + half];
        for (size_t j = 0; j < LANES && first + j < count; j++) {
            const real sum = parts[j * PARTS];
            squares[first + j] = sum < (real)INFINITY ? sum : (real)INFINITY;
        }
    }
}

/* Whether an anchor whose D is at least `last` may be as near to x as `nearest`, squared. */
static int is_unsure(const struct nearest *job, const struct space *space, const real *x, real last,
                     real nearest) {
    real norm = 0;
    for (size_t k = 0; k < job->stride; k++) norm += x[k] * x[k];
    const real unit = (real)(2.3e-16 * 2 * (double)(job->features + 8));
    return !(nearest < norm + 2 * last - unit * (norm + 2 * space->largest));
}

static real largest_of(const real *numbers, size_t count) {
    real largest = numbers[0];
    for (size_t i = 1; i < count; i++) largest = numbers[i] > largest ? numbers[i] : largest;
    return largest;
}

/* The nearest anchors of a panel of rows, from their D. */
static void choose(const struct nearest *job, const struct space *space, const real *D,
                   const vec *limits, const real *x, size_t rows, int *out) {
    const size_t m = job->anchors, stride = job->stride;
    size_t counts[PANEL] = {0}, hits = 0;
    const unsigned present = (1u << rows) - 1;
    for (size_t j = 0; j < m; j++) {
        unsigned bits = 0;
        UNROLL for (int v = 0; v < PARTS; v++)
            bits |= bits_of(load(D + j * PANEL + v * LANES) <= limits[v]) << v * LANES;
        bits &= present;
        space->hits[hits] = (struct hit){(int)j, bits};
        hits += bits != 0; /* no branch that is guessed wrong whenever an anchor is near */
    }
    for (size_t i = 0; i < hits; i++)
        for (unsigned bits = space->hits[i].rows; bits; bits &= bits - 1) {
            const int r = __builtin_ctz(bits);
            space->places[r * m + counts[r]++] = space->hits[i].place;
        }
    for (size_t r = 0; r < rows; r++, x += stride, out += job->kept) {
        int *places = space->places + r * m;
        for (size_t i = 0; i < counts[r]; i++)
            space->numbers[i] = D[(size_t)places[i] * PANEL + r];
        keep_smallest(space->numbers, places, counts[r], job->looked_at, space->sorted);
        const real last = largest_of(space->numbers, job->looked_at);
        square(x, job->points, stride, places, job->looked_at, space->numbers);
        keep_smallest(space->numbers, places, job->looked_at, job->kept, space->sorted);
        if (job->looked_at < m &&
            is_unsure(job, space, x, last, largest_of(space->numbers, job->kept))) {
            for (size_t j = 0; j < m; j++) places[j] = (int)j;
            square(x, job->points, stride, places, m, space->numbers);
            keep_smallest(space->numbers, places, m, job->kept, space->sorted);
        }
        memcpy(out, places, job->kept * sizeof(int));
    }
}

static void take_rows(const struct nearest *job, const struct space *space, size_t first,
                      size_t rows) {
    const size_t p = job->features;
    for (size_t r = 0; r < rows; r++) {
        const real *x = job->data + (first + r) * p;
        memcpy(space->rows + r * job->stride, x, p * sizeof(real));
        real *to = space->panels + r / PANEL * p * PANEL + r % PANEL;
        for (size_t k = 0; k < p; k++) to[k * PANEL] = x[k];
    }
}

int SM_NAME(nearest)(const struct nearest *job) {
    const size_t m = (job->anchors + PANEL - 1) / PANEL * PANEL, p = job->features;
    const size_t chunk = CACHED / m > NARROW ? CACHED / m : NARROW;
    const size_t strip = p > chunk ? STRIP * PANEL : PANEL;
    /* Too many to be sorted where a panel of anchors has to give more than one. */
    const size_t sorted = job->looked_at <= m / PANEL ? job->looked_at : 0;
    const size_t sizes[] = {p * strip, job->stride * strip, m * strip, sorted * strip, m, m, m,
                            m * PANEL, m};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    size_t total = 0;
    for (int i = 0; i < COUNT; i++) total += sizes[i];
    real *memory = aligned_alloc(PANEL_BYTES, total * sizeof(real)), *parts[COUNT];
    if (!memory) return -1;
    memset(memory, 0, total * sizeof(real)); /* rows that are lacking in the last panel, and tails */
    for (int i = 0; i < COUNT; i++) parts[i] = i ? parts[i - 1] + sizes[i - 1] : memory;
    const struct space space = {
        parts[0], parts[1], parts[2], (vec *)parts[3], parts[4], parts[5], (struct hit *)parts[6],
        (int *)parts[7], parts[8], largest_of(job->halves, job->anchors)};
    for (size_t j = 0; j < m; j++)
        space.halves[j] = j < job->anchors ? job->halves[j] : (real)INFINITY;
    for (size_t i = 0; i < job->rows; i += strip) {
        const size_t rows = job->rows - i < strip ? job->rows - i : strip;
        take_rows(job, &space, i, rows);
        multiply(job, &space, rows, m, chunk, sorted);
        for (size_t r = 0; r < rows; r += PANEL) {
            vec limits[PARTS];
            UNROLL for (int v = 0; v < PARTS; v++)
                limits[v] = sorted ? space.least[(r / PANEL * sorted + sorted - 1) * PARTS + v]
                                   : splat(INFINITY);
            choose(job, &space, space.D + r * m, limits, space.rows + r * job->stride,
                   rows - r < PANEL ? rows - r : PANEL, job->out + (i + r) * job->kept);
        }
    }
    free(memory);
    return 0;
}
