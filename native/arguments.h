/* How the functions of the module take their arguments: arrays of one format, held for one call. */
#ifndef SKETCHMEANS_ARGUMENTS_H
#define SKETCHMEANS_ARGUMENTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "native.h"

/* Buffers of one call, released together. */
#define MOST 14
struct buffers {
    Py_buffer views[MOST];
    int count;
    char format; /* of the numbers of the tile: 'f' or 'd' */
};

void release(struct buffers *);

/* Take a contiguous array of one format, or of either if it is 0, which is noted then. Returns
 * NULL, with an exception, if it is none. */
Py_buffer *take(struct buffers *, PyObject *, int writable, char format, const char *name);

/* Take an array of at least `count` numbers of the tile's format, or of doubles; None gives NULL.
 * Returns 0, or -1 with an exception. */
int take_numbers(struct buffers *, PyObject *, int writable, char format, size_t count,
                 const char *name, void *out);

/* Take a contiguous array of 32-bit integers. Returns NULL, with an exception, if it is none. */
Py_buffer *take_integers(struct buffers *, PyObject *, int writable, const char *name);

/* Take one of the index arrays of a sparse matrix: 32-bit integers that never exceed `most`, and
 * that never fall if `sorted`. Returns its length, or -1 with an exception. */
Py_ssize_t take_indices(struct buffers *, PyObject *, Py_ssize_t most, int sorted,
                        const char *name, const int **out);

/* A product of sizes; the largest number, which no array has, where it is too large. */
static inline size_t times(size_t one, size_t other) {
    size_t product;
    return __builtin_mul_overflow(one, other, &product) ? (size_t)-1 : product;
}

/* So many numbers of a format, filled up to whole panels. */
static inline size_t padded(size_t count, char format) {
    size_t panel = PANEL_BYTES / (format == 'd' ? 8 : 4);
    return (count + panel - 1) / panel * panel;
}

/* The kernels that were chosen for this processor. */
const struct kernels *kernels_for(char format);

/* Of module_neighbors.c. */
extern const char nearest_doc[], add_gram_doc[];
PyObject *nearest(PyObject *module, PyObject *arguments);
PyObject *add_gram(PyObject *module, PyObject *arguments);

#endif
