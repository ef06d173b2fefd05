#include "arguments.h"

#include <string.h>

void release(struct buffers *buffers) {
    while (buffers->count) PyBuffer_Release(&buffers->views[--buffers->count]);
}

Py_buffer *take(struct buffers *buffers, PyObject *object, int writable, char format,
                const char *name) {
    Py_buffer *view = &buffers->views[buffers->count];
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags)) return NULL;
    buffers->count++;
    char found = view->format && !view->format[1] ? view->format[0] : '?';
    if (found != 'f' && found != 'd') found = '?';
    if (format == 0 && found != '?') buffers->format = format = found;
    if (found == '?' || found != format) {
        PyErr_Format(PyExc_TypeError, "%s: an array of format '%c' is needed, not '%s'", name,
                     format ? format : 'd', view->format ? view->format : "B");
        return NULL;
    }
    return view;
}

int take_numbers(struct buffers *buffers, PyObject *object, int writable, char format,
                 size_t count, const char *name, void *out) {
    void **pointer = out;
    *pointer = NULL;
    if (object == Py_None) return 0;
    Py_buffer *view = take(buffers, object, writable, format, name);
    if (!view) return -1;
    if ((size_t)(view->len / view->itemsize) < count) {
        PyErr_Format(PyExc_ValueError, "%s holds %zd numbers where %zu are needed", name,
                     view->len / view->itemsize, count);
        return -1;
    }
    *pointer = view->buf;
    return 0;
}

Py_buffer *take_integers(struct buffers *buffers, PyObject *object, int writable,
                         const char *name) {
    Py_buffer *view = &buffers->views[buffers->count];
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags)) return NULL;
    buffers->count++;
    if (!view->format || strcmp(view->format, "i") || view->itemsize != sizeof(int)) {
        PyErr_Format(PyExc_TypeError, "%s: 32-bit integers are needed", name);
        return NULL;
    }
    return view;
}

Py_ssize_t take_indices(struct buffers *buffers, PyObject *object, Py_ssize_t most, int sorted,
                        const char *name, const int **out) {
    Py_buffer *view = take_integers(buffers, object, 0, name);
    if (!view) return -1;
    const int *numbers = view->buf;
    Py_ssize_t count = view->len / view->itemsize;
    int wrong = 0, last = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        wrong |= numbers[i] < (sorted ? last : 0) || numbers[i] > most;
        last = numbers[i];
    }
    if (wrong) {
        PyErr_Format(PyExc_ValueError, "%s: an index is out of range or out of order", name);
        return -1;
    }
    *out = numbers;
    return count;
}
