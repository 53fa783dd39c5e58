/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the operators of a job file into bench/op.h's plain numbers. The tests validate the file
 * with `wpkctl check`, so only the fields that the bench needs are read. */
#include "bench/op.h"
#include "common/fs.h"
#include "common/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FILE_SIZE_MAX ((size_t)1 << 20)
#define EXTENT_MAX 1000000

static const char *const type_names[] = {"conv2d",  "depthwise_conv2d", "matmul",
                                         "softmax", "layernorm",        "attention"};
enum type {
    TYPE_CONV,
    TYPE_DEPTHWISE,
    TYPE_MATMUL,
    TYPE_SOFTMAX,
    TYPE_LAYERNORM,
    TYPE_ATTENTION,
    TYPE_COUNT
};

static void get_extents(struct wpk_json_reader *reader, const char *key, int64_t *out, size_t count)
{
    if (wpk_json_get_ints(reader, key, 0, EXTENT_MAX, out, count) != count) {
        wpk_json_fail(reader, key, WPK_EUNSUPPORTED, "the bench needs %zu numbers here", count);
    }
}

static void read_conv(struct wpk_json_reader *reader, bool depthwise, struct bench_op *op)
{
    int64_t input[4] = {0};
    int64_t kernel[2] = {0};
    get_extents(reader, "input", input, 4);
    get_extents(reader, "kernel", kernel, 2);
    get_extents(reader, "stride", op->stride, 2);
    get_extents(reader, "padding", op->padding, 4);
    if (input[0] != 1) {
        wpk_json_fail(reader, "input", WPK_EUNSUPPORTED, "the bench has batch 1 only");
    }
    op->kind = BENCH_CONV;
    op->c = input[1];
    op->h = input[2];
    op->w = input[3];
    op->r = kernel[0];
    op->s = kernel[1];
    op->k = depthwise ? op->c : wpk_json_get_int(reader, "filters", 1, EXTENT_MAX);
    op->groups = depthwise ? op->c : wpk_json_get_int(reader, "groups", 1, EXTENT_MAX);
    op->bias = wpk_json_get_bool(reader, "bias");
    op->relu = strcmp(wpk_json_get_text(reader, "activation", 32), "relu") == 0;
}

static void read_matmul(struct wpk_json_reader *reader, struct bench_op *op)
{
    int64_t a[2] = {0};
    int64_t b[2] = {0};
    get_extents(reader, "a", a, 2);
    get_extents(reader, "b", b, 2);
    op->kind = BENCH_MATMUL;
    op->m = a[0];
    op->depth = a[1];
    op->n = b[1];
}

static void read_rows(struct wpk_json_reader *reader, enum bench_kind kind, struct bench_op *op)
{
    int64_t input[2] = {0};
    get_extents(reader, "shape", input, 2);
    op->kind = kind;
    op->rows = input[0];
    op->columns = input[1];
    if (kind == BENCH_LAYERNORM) {
        op->epsilon = wpk_json_get_real(reader, "eps", 0, 1);
    }
}

static void read_attention(struct wpk_json_reader *reader, struct bench_op *op)
{
    int64_t shape[3] = {0};
    get_extents(reader, "shape", shape, 3);
    if (!wpk_json_get_bool(reader, "mask")) {
        wpk_json_fail(reader, "mask", WPK_EUNSUPPORTED, "the bench has attention with a mask only");
    }
    op->kind = BENCH_ATTENTION;
    op->heads = shape[0];
    op->rows = shape[1];
    op->columns = shape[2];
}

static void read_op(struct wpk_json_reader *reader, struct bench_op *op)
{
    wpk_json_get_copy(reader, "name", op->name, sizeof(op->name));
    wpk_json_enter(reader, "op");
    const size_t type = wpk_json_get_choice(reader, "type", type_names, TYPE_COUNT);
    switch ((enum type)type) {
    case TYPE_CONV:
    case TYPE_DEPTHWISE:
        read_conv(reader, type == TYPE_DEPTHWISE, op);
        break;
    case TYPE_MATMUL:
        read_matmul(reader, op);
        break;
    case TYPE_SOFTMAX:
        read_rows(reader, BENCH_SOFTMAX, op);
        break;
    case TYPE_LAYERNORM:
        read_rows(reader, BENCH_LAYERNORM, op);
        break;
    case TYPE_ATTENTION:
        read_attention(reader, op);
        break;
    case TYPE_COUNT:
        break;
    }
    wpk_json_leave(reader);
}

static const struct bench_op empty_call = {
    .name = BENCH_EMPTY_CALL,
    .kind = BENCH_RELU,
    .rows = 1,
    .columns = 16,
};

wpk_err bench_ops_read(const char *path, struct bench_ops *out, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    struct wpk_json_reader *reader = NULL;
    struct bench_ops ops = {0};
    wpk_err err = wpk_fs_read(path, FILE_SIZE_MAX, &text, diag);
    if (err == WPK_OK) {
        err = wpk_json_open(wpk_buf_text(&text), text.size, 0, &reader, diag);
    }
    if (err != WPK_OK) {
        goto done;
    }
    wpk_json_enter_array(reader, "ops");
    while (wpk_json_next(reader)) {
        if (ops.count == BENCH_OPS_MAX - 1) {
            wpk_json_fail(reader, NULL, WPK_ENOSPC, "more than %d operators", BENCH_OPS_MAX - 1);
            break;
        }
        read_op(reader, &ops.op[ops.count++]);
    }
    wpk_json_leave(reader);
    err = wpk_json_status(reader);
    if (err == WPK_OK) {
        ops.op[ops.count++] = empty_call;
        *out = ops;
    }
done:
    wpk_json_close(reader);
    wpk_buf_fini(&text);
    return err;
}
