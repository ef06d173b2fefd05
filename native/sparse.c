/* The product of two sparse matrices as a dense tile.
 *
 * A sparse result, which SciPy would give, must find out which of its numbers are there; a dense
 * row of a tile lies in the first cache and takes every product where it belongs.
 */
#include "vectors.h"

void SM_NAME(sparse_dots)(const struct sparse *left, const struct sparse *right, size_t rows,
                          size_t columns, void *out) {
    const real *ours = left->values, *theirs = right->values;
    real *row = out;
    memset(out, 0, rows * columns * sizeof(real));
    for (size_t i = 0; i < rows; i++, row += columns)
        for (int s = left->starts[i]; s < left->starts[i + 1]; s++) {
            const int k = left->places[s];
            for (int t = right->starts[k]; t < right->starts[k + 1]; t++)
                row[right->places[t]] += ours[s] * theirs[t];
        }
}
