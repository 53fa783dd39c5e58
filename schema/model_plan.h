/* SPDX-License-Identifier: Apache-2.0 */
/* A model's plan, the file model.wpk: kernels, constants, and the steps that compute the outputs,
 * for each set of shapes of its inputs that it was tuned for.
 *
 *     "WPKPLAN\n"  version u32  zero u32  manifest_size u64  data_size u64  SHA-256 of the manifest
 *     the manifest: JSON with kernels, values and steps, and a checksum (XXH3) of the data
 *     zeros up to a multiple of 64 bytes
 *     the data: kernels (shared objects as they are) and constants, each at a multiple of 64 bytes
 *     128 zeros, so that a vector load may begin in the last constant
 *
 * Numbers are little-endian. A step is one call of a kernel, or of a function of libwpk; its
 * arguments are values. A value lies in the model's inputs or outputs, in the data, or in the arena
 * of a context. The steps of a loop are run several times, one iteration after the other, in which
 * some of their values lie further on. */
#ifndef WPK_SCHEMA_MODEL_PLAN_H
#define WPK_SCHEMA_MODEL_PLAN_H

#include "common/arena.h"
#include "common/buf.h"
#include "schema/draw.h"
#include "schema/scatter.h"
#include "schema/tensor.h"

#define WPK_MODEL_PLAN_VERSION 12
#define WPK_MODEL_PLAN_SUFFIX ".wpk"
#define WPK_MODEL_PLAN_ALIGNMENT 64 /* bytes, of what is no part of a value */
#define WPK_MODEL_PLAN_ALIGN(size)                                                                 \
    (((size) + WPK_MODEL_PLAN_ALIGNMENT - 1) / WPK_MODEL_PLAN_ALIGNMENT * WPK_MODEL_PLAN_ALIGNMENT)
#define WPK_MODEL_PLAN_SLACK 128 /* bytes after the data that may be read */
#define WPK_MODEL_PLAN_MANIFEST_MAX ((size_t)64 << 20)
#define WPK_MODEL_PLAN_STEPS_MAX 65536
#define WPK_MODEL_PLAN_VALUES_MAX 262144
#define WPK_MODEL_PLAN_SHAPES_MAX 16
#define WPK_MODEL_PLAN_ENDS_MAX 1024 /* inputs, and outputs */
#define WPK_MODEL_PLAN_ARGUMENTS_MAX 64
#define WPK_MODEL_PLAN_KERNEL_NAME_MAX 64
#define WPK_MODEL_PLAN_DEVICE_MAX 256 /* a device class, with its NUL */
#define WPK_MODEL_PLAN_ARENA_MAX ((int64_t)1 << 44)

enum wpk_model_plan_place {
    WPK_MODEL_PLAN_ARENA,
    WPK_MODEL_PLAN_DATA, /* a constant */
    WPK_MODEL_PLAN_INPUT,
    WPK_MODEL_PLAN_OUTPUT,
    WPK_MODEL_PLAN_PLACE_COUNT,
};

struct wpk_model_plan_value {
    struct wpk_tensor_type type; /* row-major; in the arena with something around it */
    enum wpk_model_plan_place place;
    int64_t offset; /* ARENA, DATA: bytes; INPUT, OUTPUT: index of the input or output */
    bool is_part;   /* other values lie around it; else a border, which is zero */
    int64_t stride; /* ARENA, DATA: bytes further in each iteration of a loop; 0 elsewhere */
};

/* An input or output. An output whose value lies elsewhere is copied from there at the end. */
struct wpk_model_plan_end {
    const char *name;
    int value;
    struct wpk_domain domain; /* inputs: values for tests and timing */
};

/* Times are those of one call alone, when it was tuned; 0: not timed. */
struct wpk_model_plan_kernel {
    int64_t offset;                            /* bytes in the data */
    int64_t size;                              /* bytes */
    char name[WPK_MODEL_PLAN_KERNEL_NAME_MAX]; /* of its region: "Conv3" */
    double flops;                              /* as in ir/cost.h */
    double bytes;                              /* the same: bytes_min */
    int64_t time_ns;
    char vendor[WPK_MODEL_PLAN_KERNEL_NAME_MAX]; /* the fastest library's; "": none was timed */
    int64_t vendor_ns;
};

struct wpk_model_plan_argument {
    char name[WPK_NAME_MAX]; /* the kernel's */
    int value;
};

/* Functions of libwpk: what the tensor IR cannot say. They read a tensor x [before, extent, after].
 * A negative index counts from the end. */
enum wpk_model_plan_host_op {
    WPK_MODEL_PLAN_SCATTER,       /* arguments x, i, u, y: y = x with the updates u at indices i
                                     (schema/scatter.h) */
    WPK_MODEL_PLAN_TOP_K,         /* arguments x, y: the largest elements of each line, in order */
    WPK_MODEL_PLAN_TOP_K_INDICES, /* the same: where they are */
    WPK_MODEL_PLAN_NON_ZERO,      /* arguments x, y: y[d,j] = index along axis d of the j-th element
                                     of x that is not 0; x has `count` of them */
    WPK_MODEL_PLAN_COPY,          /* arguments x, y: y = x; x is [1, count, 1] */
    WPK_MODEL_PLAN_HOST_COUNT,
};

const char *wpk_model_plan_host_name(enum wpk_model_plan_host_op op);

struct wpk_model_plan_host {
    enum wpk_model_plan_host_op op;
    int64_t before, extent, after; /* >= 1 */
    int64_t count;                 /* of what is wanted of each line, or of what is not 0; >= 1 */
    bool is_smallest;              /* the smallest elements instead */
    int axis;                      /* of a scatter, and how it joins */
    enum wpk_scatter_reduction reduction;
};

struct wpk_model_plan_step {
    int kernel; /* -1: `host` computes it */
    struct wpk_model_plan_host host;
    const char *node; /* the nodes of the model, for people */
    struct wpk_model_plan_argument *arguments;
    int argument_count;
};

/* Steps [first, first + count) are run `times` times, each after those before it. */
struct wpk_model_plan_loop {
    int first;
    int count;     /* >= 1 */
    int64_t times; /* >= 1 */
};

/* A node of the model that is no step, and why: for people. */
struct wpk_model_plan_note {
    const char *node;
    const char *why;
};

/* The model for one set of shapes of its inputs. */
struct wpk_model_plan_shape {
    int64_t arena_size; /* bytes that a context needs */
    struct wpk_model_plan_value *values;
    int value_count;
    struct wpk_model_plan_end *inputs;
    int input_count;
    struct wpk_model_plan_end *outputs;
    int output_count;
    struct wpk_model_plan_step *steps;
    int step_count;
    struct wpk_model_plan_loop *loops; /* in the order of their steps, none of which two have */
    int loop_count;
    struct wpk_model_plan_note *notes;
    int note_count;
};

/* The loop of a step; NULL: none. */
const struct wpk_model_plan_loop *wpk_model_plan_find_loop(const struct wpk_model_plan_shape *shape,
                                                           int step);

/* = {0} is an empty plan. Texts and arrays lie in `arena`, or are borrowed by who encodes. Every
 * shape has inputs and outputs of the same names, in one order. */
struct wpk_model_plan {
    struct wpk_arena arena;
    char device[WPK_MODEL_PLAN_DEVICE_MAX]; /* class of the device that it was tuned on */
    int threads;
    struct wpk_model_plan_kernel *kernels;
    int kernel_count;
    struct wpk_model_plan_shape *shapes; /* [shape_count], at least one */
    int shape_count;
    const char *data; /* [data_size]; borrowed */
    size_t data_size;
};

void wpk_model_plan_fini(struct wpk_model_plan *plan);

/* Append the file.   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_model_plan_encode(const struct wpk_model_plan *plan, struct wpk_buf *out);

/* Read and check a plan. Every index, offset and size of an accepted plan is within its bounds.
 *
 *   shape   bytes [size], aligned to WPK_MODEL_PLAN_ALIGNMENT; out->data points into them
 *   owns    caller calls wpk_model_plan_fini, after failures too, and keeps the bytes until then
 *   errors  WPK_ECORRUPT not a plan, cut short, changed, or inconsistent; WPK_EMISMATCH another
 *           version; WPK_ENOMEM
 */
wpk_err wpk_model_plan_decode(const void *bytes, size_t size, struct wpk_model_plan *out,
                              struct wpk_diag *diag);

#endif
