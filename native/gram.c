/* The Gram matrix of sparse rows that have as many numbers each, as a dense one.
 *
 * SciPy's product of sparse matrices must find out which numbers of the result are there; here
 * every product goes where it belongs. Only numbers on and right of the diagonal are made, and
 * those of a few rows of G in a call: threads that take different rows of it need no copies, and
 * what they write to stays in the cache. A number of G is the sum over the rows in their order,
 * however G and the rows are cut.
 */
#include "native.h"

/* Whether columns rise and are columns of G. */
static int in_order(const int *columns, size_t count, size_t width) {
    int wrong = 0;
    for (size_t i = 1; i < count; i++) wrong |= columns[i] <= columns[i - 1];
    return !count || (!wrong && columns[0] >= 0 && (size_t)columns[count - 1] < width);
}

int gram_of_rows(const struct gram *job) {
    const int *columns = job->columns;
    const double *values = job->values;
    const size_t stored = job->stored;
    for (size_t i = 0; i < job->rows; i++, columns += stored, values += stored) {
        if (!in_order(columns, stored, job->width)) return -1;
        size_t a = 0;
        while (a < stored && (size_t)columns[a] < job->first) a++;
        for (; a < stored && (size_t)columns[a] < job->last; a++) {
            double *row = job->G + (size_t)columns[a] * job->width;
            const double value = values[a];
            for (size_t b = a; b < stored; b++) row[columns[b]] += value * values[b];
        }
    }
    return 0;
}
