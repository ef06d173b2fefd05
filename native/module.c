/* The Python module: arguments are checked against each other, the lock of the interpreter is
 * released around the work, and the copy of the kernels that suits the processor is called. */
#include "arguments.h"

#include <string.h>

extern const struct kernels kernels_generic_float, kernels_generic_double;
#if defined(__x86_64__)
extern const struct kernels kernels_v2_float, kernels_v2_double;
extern const struct kernels kernels_v3_float, kernels_v3_double;
extern const struct kernels kernels_v4_float, kernels_v4_double;
#endif

/* What this processor can run, best first; pairs of float and double. */
static const struct kernels *usable[4][2];
static int n_usable, chosen;

static void find_usable(void) {
    n_usable = chosen = 0;
#define ADD(level) \
    usable[n_usable][0] = &kernels_##level##_float, usable[n_usable++][1] = &kernels_##level##_double
#if defined(__x86_64__)
    /* What CMakeLists.txt lets the compiler use at each level. */
    __builtin_cpu_init();
    int v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    int v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    int v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
    if (v4) ADD(v4);
    if (v3) ADD(v3);
    if (v2) ADD(v2);
#endif
    ADD(generic);
}

const struct kernels *kernels_for(char format) { return usable[chosen][format == 'd']; }

PyDoc_STRVAR(tile_doc,
             "tile(statistic, left, left_shift, right_shift, right_omega, left_W, *, right=None, "
             "features=0, map=IDENTITY, degree=1, scale=1.0, left_weight=None, right_weight=None, "
             "left_omega=None, right_W=None, diagonal=None, values=None, zero_distance=False)"
             "\n--\n\n"
             "Add a tile's products to W and return the sum of its squares; see native.h.");

static PyObject *tile(PyObject *module, PyObject *arguments, PyObject *keywords) {
    (void)module;
    static char *names[] = {"statistic",  "left",        "left_shift",  "right_shift",
                            "right_omega", "left_W",      "right",       "features",
                            "map",         "degree",      "scale",       "left_weight",
                            "right_weight", "left_omega", "right_W",     "diagonal",
                            "values",      "zero_distance", NULL};
    int statistic, map = IDENTITY, degree = 1, zero_distance = 0;
    Py_ssize_t features = 0;
    double scale = 1;
    PyObject *left, *right = Py_None, *shifts[2], *weights[2] = {Py_None, Py_None};
    PyObject *omegas[2] = {Py_None, Py_None}, *W[2] = {Py_None, Py_None}, *diagonal = Py_None;
    PyObject *values = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "iOOOOO|$OniidOOOOOOp:tile", names,
                                     &statistic, &left, &shifts[0], &shifts[1], &omegas[1], &W[0],
                                     &right, &features, &map, &degree, &scale, &weights[0],
                                     &weights[1], &omegas[0], &W[1], &diagonal, &values,
                                     &zero_distance))
        return NULL;
    if (statistic < DOT || statistic > GIVEN || map < IDENTITY || map >= MAPS || degree < 1 ||
        features < 0 || (weights[0] == Py_None) != (weights[1] == Py_None) ||
        (omegas[0] == Py_None) != (W[1] == Py_None) || omegas[1] == Py_None || W[0] == Py_None) {
        PyErr_SetString(PyExc_ValueError, "tile: arguments contradict each other");
        return NULL;
    }
    struct buffers buffers = {.count = 0};
    struct tile job = {.statistic = statistic,
                       .map = map,
                       .degree = (unsigned)degree,
                       .scale = scale,
                       .features = (size_t)features,
                       .zero_distance = zero_distance};
    PyObject *result = NULL;
    Py_buffer *rows = take(&buffers, shifts[0], 0, 0, "left_shift");
    if (!rows) goto done;
    char format = buffers.format;
    Py_buffer *columns = take(&buffers, shifts[1], 0, format, "right_shift");
    Py_buffer *product = columns ? take(&buffers, W[0], 1, 'd', "left_W") : NULL;
    if (!product) goto done;
    job.left_shift = rows->buf, job.right_shift = columns->buf, job.left_W = product->buf;
    job.rows = rows->len / rows->itemsize, job.columns = columns->len / columns->itemsize;
    if (!job.rows || !job.columns || product->len % (8 * job.rows)) {
        PyErr_SetString(PyExc_ValueError, "tile: left_W must have a row for every left_shift");
        goto done;
    }
    job.width = product->len / 8 / job.rows;
    size_t left_rows = padded(job.rows, format), right_rows = padded(job.columns, format);
    size_t given = times(job.rows, job.columns);
    size_t diagonal_size = job.rows < job.columns ? job.rows : job.columns;
    if (take_numbers(&buffers, left, 0, format,
                     statistic == GIVEN ? given : times(left_rows, job.features), "left", &job.left) ||
        take_numbers(&buffers, right, 0, format, times(right_rows, job.features), "right", &job.right) ||
        take_numbers(&buffers, weights[0], 0, format, job.rows, "left_weight", &job.left_weight) ||
        take_numbers(&buffers, weights[1], 0, format, job.columns, "right_weight",
                     &job.right_weight) ||
        take_numbers(&buffers, omegas[0], 0, format, times(left_rows, job.width), "left_omega",
                     &job.left_omega) ||
        take_numbers(&buffers, omegas[1], 0, format, times(right_rows, job.width), "right_omega",
                     &job.right_omega) ||
        take_numbers(&buffers, W[1], 1, 'd', times(job.columns, job.width), "right_W", &job.right_W) ||
        take_numbers(&buffers, diagonal, 1, 'd', diagonal_size, "diagonal", &job.diagonal) ||
        take_numbers(&buffers, values, 1, format, given, "values", &job.values))
        goto done;
    if (!job.left || (statistic != GIVEN && !job.right)) {
        PyErr_SetString(PyExc_ValueError, "tile: the points are missing");
        goto done;
    }
    const struct kernels *kernels = kernels_for(format);
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = kernels->tile(&job);
    Py_END_ALLOW_THREADS;
    result = status ? PyErr_NoMemory() : PyFloat_FromDouble(job.squares);
done:
    release(&buffers);
    return result;
}

PyDoc_STRVAR(pack_doc, "pack(rows, panels)\n--\n\n"
                       "Copy a matrix into panels, with zeros for the rows that are lacking.");

static PyObject *pack(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *rows, *panels, *result = NULL;
    if (!PyArg_ParseTuple(arguments, "OO:pack", &rows, &panels)) return NULL;
    struct buffers buffers = {.count = 0};
    Py_buffer *from = take(&buffers, rows, 0, 0, "rows"), *to = NULL;
    if (from) to = take(&buffers, panels, 1, buffers.format, "panels");
    if (!to) goto done;
    if (from->ndim != 2) {
        PyErr_SetString(PyExc_ValueError, "pack: rows must have two dimensions");
        goto done;
    }
    size_t count = from->shape[0], features = from->shape[1];
    if ((size_t)(to->len / to->itemsize) != padded(count, buffers.format) * features) {
        PyErr_Format(PyExc_ValueError, "pack: panels must hold %zu numbers, not %zd",
                     padded(count, buffers.format) * features, to->len / to->itemsize);
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS;
    kernels_for(buffers.format)->pack(from->buf, count, features, to->buf);
    Py_END_ALLOW_THREADS;
    result = Py_NewRef(Py_None);
done:
    release(&buffers);
    return result;
}

PyDoc_STRVAR(map_doc, "apply_map(map, degree, numbers)\n--\n\n"
                      "Apply a scalar map to an array in place, as tiles do to theirs.");

static PyObject *apply_map(PyObject *module, PyObject *arguments) {
    (void)module;
    int map, degree;
    PyObject *numbers, *result = NULL;
    if (!PyArg_ParseTuple(arguments, "iiO:apply_map", &map, &degree, &numbers)) return NULL;
    if (map < IDENTITY || map >= MAPS || degree < 1) {
        PyErr_SetString(PyExc_ValueError, "apply_map: there is no such map");
        return NULL;
    }
    struct buffers buffers = {.count = 0};
    Py_buffer *view = take(&buffers, numbers, 1, 0, "numbers");
    if (view) {
        kernels_for(buffers.format)->map(map, (unsigned)degree, view->buf,
                                         view->len / view->itemsize);
        result = Py_NewRef(Py_None);
    }
    release(&buffers);
    return result;
}

PyDoc_STRVAR(transform_doc,
             "transform(matrix, progress=None, /)\n--\n\n"
             "Walsh-Hadamard transform of the columns of a matrix, in place. Threads that call it "
             "with the same progress, two 32-bit zeros made for this call alone, share the work.");

static PyObject *transform(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *matrix, *shared = Py_None, *result = NULL;
    if (!PyArg_ParseTuple(arguments, "O|O:transform", &matrix, &shared)) return NULL;
    struct buffers buffers = {.count = 0};
    Py_buffer *view = take(&buffers, matrix, 1, 0, "matrix");
    if (!view) goto done;
    if (view->ndim != 2 || view->shape[0] < 1 || view->shape[0] & (view->shape[0] - 1)) {
        PyErr_SetString(PyExc_ValueError, "transform: a matrix of 2^k rows is needed");
        goto done;
    }
    unsigned bits = 0;
    while ((Py_ssize_t)1 << bits < view->shape[0]) bits++;
    struct progress *progress = NULL;
    if (shared != Py_None) {
        Py_buffer *counts = &buffers.views[buffers.count];
        if (PyObject_GetBuffer(shared, counts, PyBUF_WRITABLE)) goto done;
        buffers.count++;
        progress = counts->buf;
        if (bits < 3 || counts->len != sizeof *progress || (size_t)progress % sizeof(unsigned)) {
            PyErr_SetString(PyExc_ValueError, "transform: to share it, eight rows and a progress of "
                                              "two 32-bit numbers are needed");
            goto done;
        }
    }
    const struct kernels *kernels = kernels_for(buffers.format);
    Py_BEGIN_ALLOW_THREADS;
    if (progress)
        kernels->transform_together(view->buf, bits, view->shape[1], progress);
    else
        kernels->transform(view->buf, bits, view->shape[1]);
    Py_END_ALLOW_THREADS;
    result = Py_NewRef(Py_None);
done:
    release(&buffers);
    return result;
}

/* Take a sparse matrix: starts of its rows, and columns and values of its numbers. Returns the
 * number of its rows, or -1 with an exception. */
static Py_ssize_t take_sparse(struct buffers *buffers, PyObject *starts, PyObject *places,
                              PyObject *values, char format, Py_ssize_t columns, const char *name,
                              struct sparse *out) {
    Py_buffer *numbers = take(buffers, values, 0, format, name);
    if (!numbers) return -1;
    Py_ssize_t stored = numbers->len / numbers->itemsize;
    Py_ssize_t ends = take_indices(buffers, starts, stored, 1, name, &out->starts);
    if (ends < 0) return -1;
    Py_ssize_t count = take_indices(buffers, places, columns - 1, 0, name, &out->places);
    if (count < 0) return -1;
    if (ends < 1 || count < stored) {
        PyErr_Format(PyExc_ValueError, "%s: its arrays do not fit each other", name);
        return -1;
    }
    out->values = numbers->buf;
    return ends - 1;
}

PyDoc_STRVAR(sparse_doc,
             "sparse_dots(left_starts, left_places, left_values, right_starts, right_places, "
             "right_values, out)\n--\n\n"
             "The product of two sparse matrices, each given by its rows, as a dense matrix.");

static PyObject *sparse_dots(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *left[3], *right[3], *out, *result = NULL;
    if (!PyArg_ParseTuple(arguments, "OOOOOOO:sparse_dots", &left[0], &left[1], &left[2],
                          &right[0], &right[1], &right[2], &out))
        return NULL;
    struct buffers buffers = {.count = 0};
    struct sparse one, other;
    Py_buffer *dense = take(&buffers, out, 1, 0, "out");
    if (!dense) goto done;
    if (dense->ndim != 2) {
        PyErr_SetString(PyExc_ValueError, "sparse_dots: out must have two dimensions");
        goto done;
    }
    size_t rows = dense->shape[0], columns = dense->shape[1];
    Py_ssize_t inner = take_sparse(&buffers, right[0], right[1], right[2], buffers.format,
                                   columns, "right", &other);
    if (inner < 0) goto done;
    Py_ssize_t found =
        take_sparse(&buffers, left[0], left[1], left[2], buffers.format, inner, "left", &one);
    if (found < 0) goto done;
    if ((size_t)found != rows) {
        PyErr_Format(PyExc_ValueError, "sparse_dots: out has %zu rows where left has %zd", rows,
                     found);
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS;
    kernels_for(buffers.format)->sparse_dots(&one, &other, rows, columns, dense->buf);
    Py_END_ALLOW_THREADS;
    result = Py_NewRef(Py_None);
done:
    release(&buffers);
    return result;
}

PyDoc_STRVAR(levels_doc, "levels()\n--\n\nThe levels that this processor can run, best first.");

static PyObject *levels(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    PyObject *names = PyTuple_New(n_usable);
    for (int i = 0; names && i < n_usable; i++) {
        PyObject *name = PyUnicode_FromString(usable[i][0]->level);
        if (!name || PyTuple_SetItem(names, i, name)) {
            Py_DECREF(names);
            return NULL;
        }
    }
    return names;
}

PyDoc_STRVAR(use_doc, "use(level)\n--\n\n"
                      "Run the kernels of this level from now on, and return the one before.");

static PyObject *use(PyObject *module, PyObject *arguments) {
    (void)module;
    const char *level;
    if (!PyArg_ParseTuple(arguments, "s:use", &level)) return NULL;
    for (int i = 0; i < n_usable; i++)
        if (!strcmp(usable[i][0]->level, level)) {
            const char *before = usable[chosen][0]->level;
            chosen = i;
            return PyUnicode_FromString(before);
        }
    PyErr_Format(PyExc_ValueError, "this processor cannot run level '%s'", level);
    return NULL;
}

static PyMethodDef methods[] = {
    {"tile", (PyCFunction)(void (*)(void))tile, METH_VARARGS | METH_KEYWORDS, tile_doc},
    {"pack", pack, METH_VARARGS, pack_doc},
    {"apply_map", apply_map, METH_VARARGS, map_doc},
    {"transform", transform, METH_VARARGS, transform_doc},
    {"sparse_dots", sparse_dots, METH_VARARGS, sparse_doc},
    {"nearest", nearest, METH_VARARGS, nearest_doc},
    {"add_gram", add_gram, METH_VARARGS, add_gram_doc},
    {"levels", levels, METH_NOARGS, levels_doc},
    {"use", use, METH_VARARGS, use_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_native", .m_size = -1, .m_methods = methods,
    .m_doc = "Compiled tiles, the fast Walsh-Hadamard transform, and neighbours."};

PyMODINIT_FUNC PyInit__native(void) {
    find_usable();
    PyObject *module = PyModule_Create(&definition);
    const struct {
        const char *name;
        long value;
    } constants[] = {
        {"DOT", DOT},     {"MANHATTAN", MANHATTAN}, {"GIVEN", GIVEN}, {"IDENTITY", IDENTITY},
        {"POWER", POWER}, {"EXP2", EXP2},           {"TANH", TANH},   {"PANEL_BYTES", PANEL_BYTES},
    };
    for (size_t i = 0; module && i < sizeof constants / sizeof *constants; i++)
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value)) {
            Py_DECREF(module);
            return NULL;
        }
    return module;
}
