/* What the module offers for the neighbours kernel: nearest anchors, and the Gram matrix of rows
 * that have as many numbers each. Arguments are checked here, as in module.c. */
#include "arguments.h"

#include <limits.h>

const char nearest_doc[] =
    "nearest(rows, panels, halves, points, looked_at, out)\n--\n\n"
    "Write the places of the nearest anchors of every row, in rising order; see native.h.";

PyObject *nearest(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *rows, *panels, *halves, *points, *out, *result = NULL;
    Py_ssize_t looked_at;
    if (!PyArg_ParseTuple(arguments, "OOOOnO:nearest", &rows, &panels, &halves, &points,
                          &looked_at, &out))
        return NULL;
    struct buffers buffers = {.count = 0};
    Py_buffer *data = take(&buffers, rows, 0, 'd', "rows");
    Py_buffer *anchors = data ? take(&buffers, points, 0, 'd', "points") : NULL;
    Py_buffer *packed = anchors ? take(&buffers, panels, 0, 'd', "panels") : NULL;
    Py_buffer *norms = packed ? take(&buffers, halves, 0, 'd', "halves") : NULL;
    Py_buffer *found = norms ? take_integers(&buffers, out, 1, "out") : NULL;
    if (!found) goto done;
    if (data->ndim != 2 || anchors->ndim != 2 || found->ndim != 2) {
        PyErr_SetString(PyExc_ValueError,
                        "nearest: rows, points and out must have two dimensions");
        goto done;
    }
    struct nearest job = {.rows = data->shape[0],
                          .features = data->shape[1],
                          .anchors = anchors->shape[0],
                          .stride = anchors->shape[1],
                          .looked_at = looked_at,
                          .kept = found->shape[1],
                          .data = data->buf,
                          .panels = packed->buf,
                          .halves = norms->buf,
                          .points = anchors->buf,
                          .out = found->buf};
    if (!job.features || job.stride != padded(job.features, 'd') ||
        (size_t)norms->len / 8 != job.anchors || job.anchors > INT_MAX ||
        (size_t)packed->len / 8 != padded(job.anchors, 'd') * job.features ||
        (size_t)found->shape[0] != job.rows) {
        PyErr_SetString(PyExc_ValueError, "nearest: arrays do not fit each other");
        goto done;
    }
    if (job.kept < 1 || looked_at < found->shape[1] || looked_at > anchors->shape[0]) {
        PyErr_Format(PyExc_ValueError, "nearest: of %zd anchors %zd are looked at and %zd are kept",
                     anchors->shape[0], looked_at, found->shape[1]);
        goto done;
    }
    const struct kernels *kernels = kernels_for('d');
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = kernels->nearest(&job);
    Py_END_ALLOW_THREADS;
    result = status ? PyErr_NoMemory() : Py_NewRef(Py_None);
done:
    release(&buffers);
    return result;
}

const char add_gram_doc[] =
    "add_gram(columns, values, first, last, G)\n--\n\n"
    "Add the Gram matrix of sparse rows to some rows of G, right of the diagonal; see native.h.";

PyObject *add_gram(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *columns, *values, *G, *result = NULL;
    Py_ssize_t first, last;
    if (!PyArg_ParseTuple(arguments, "OOnnO:add_gram", &columns, &values, &first, &last, &G))
        return NULL;
    struct buffers buffers = {.count = 0};
    Py_buffer *places = take_integers(&buffers, columns, 0, "columns");
    Py_buffer *numbers = places ? take(&buffers, values, 0, 'd', "values") : NULL;
    Py_buffer *sums = numbers ? take(&buffers, G, 1, 'd', "G") : NULL;
    if (!sums) goto done;
    if (places->ndim != 2 || numbers->ndim != 2 || sums->ndim != 2 ||
        sums->shape[0] != sums->shape[1] || places->shape[0] != numbers->shape[0] ||
        places->shape[1] != numbers->shape[1] || first < 0 || last < first ||
        last > sums->shape[0]) {
        PyErr_SetString(PyExc_ValueError, "add_gram: arrays do not fit each other");
        goto done;
    }
    const struct gram job = {.rows = places->shape[0],
                             .stored = places->shape[1],
                             .width = sums->shape[0],
                             .first = first,
                             .last = last,
                             .columns = places->buf,
                             .values = numbers->buf,
                             .G = sums->buf};
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = gram_of_rows(&job);
    Py_END_ALLOW_THREADS;
    if (status)
        PyErr_SetString(PyExc_ValueError,
                        "columns: an index is out of range or out of order; G is of no use now");
    else
        result = Py_NewRef(Py_None);
done:
    release(&buffers);
    return result;
}
