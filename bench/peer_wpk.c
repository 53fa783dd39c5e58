/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of ours as a peer: opened by its path and run through libwpk, as a user would do.
 *
 * A program lists its inputs and constants in the order in which its operator names them, which is
 * the order of bench/op.h. With layouts `any` the input is converted to the kernel's layout before
 * the timing. With `fixed` input and output are row-major, and nothing is converted. */
#include "bench/peer.h"
#include "runtime/wpk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_peer {
    struct wpk_kernel *kernel;
    struct wpk_context *context;
    int input_count;
    struct wpk_tensor_data inputs[BENCH_OPERANDS_MAX]; /* data owned */
    struct wpk_tensor_data output;                     /* data owned */
};

void bench_peer_version(char *out, size_t size)
{
    snprintf(out, size, "Woodpecker %s", WPK_VERSION);
}

/* A kernel tuned for another operator would compute nonsense quickly; sizes tell it apart. */
static wpk_err check_shape(const struct wpk_argument *argument, const struct bench_shape *shape,
                           struct wpk_diag *diag)
{
    if (wpk_tensor_type_elements(&argument->type) != bench_shape_elements(shape)) {
        return wpk_fail(diag, WPK_EMISMATCH,
                        "the kernel's %s has another size: it was tuned for another operator",
                        argument->name);
    }
    return WPK_OK;
}

static wpk_err check_arguments(const struct bench_peer *peer, const struct bench_case *what,
                               struct wpk_diag *diag)
{
    const struct wpk_kernel *kernel = peer->kernel;
    const int input_count = bench_op_input_count(&what->op);
    const int constant_count = bench_op_operand_count(&what->op) - input_count;
    if (wpk_kernel_input_count(kernel) != (size_t)input_count ||
        wpk_kernel_output_count(kernel) != 1 ||
        wpk_kernel_constant_count(kernel) != (size_t)constant_count) {
        return wpk_fail(diag, WPK_EMISMATCH,
                        "the kernel has %zu inputs and %zu constants; the operator %d and %d",
                        wpk_kernel_input_count(kernel), wpk_kernel_constant_count(kernel),
                        input_count, constant_count);
    }
    const struct wpk_argument *output = wpk_kernel_output(kernel, 0);
    const struct bench_shape output_shape = bench_op_output(&what->op);
    wpk_err err = check_shape(output, &output_shape, diag);
    bool row_major = wpk_layout_is_row_major(&output->type.layout);
    for (int i = 0; err == WPK_OK && i < input_count; i++) {
        const struct wpk_argument *input = wpk_kernel_input(kernel, (size_t)i);
        const struct bench_shape shape = bench_op_operand(&what->op, i);
        row_major = row_major && wpk_layout_is_row_major(&input->type.layout);
        err = check_shape(input, &shape, diag);
    }
    for (int i = 0; err == WPK_OK && i < constant_count; i++) {
        const struct bench_shape shape = bench_op_operand(&what->op, input_count + i);
        err = check_shape(wpk_kernel_constant(kernel, (size_t)i), &shape, diag);
    }
    if (err == WPK_OK && what->layouts == BENCH_LAYOUTS_FIXED && !row_major) {
        err = wpk_fail(diag, WPK_EMISMATCH, "the kernel was tuned with layouts of its own choice");
    }
    return err;
}

static wpk_err prepare_constants(struct bench_peer *peer, const struct bench_op *op,
                                 const float *const *operands, struct wpk_diag *diag)
{
    struct wpk_tensor_data constants[BENCH_OPERANDS_MAX] = {{0}};
    const int input_count = bench_op_input_count(op);
    const int count = bench_op_operand_count(op) - input_count;
    for (int i = 0; i < count; i++) {
        const struct bench_shape shape = bench_op_operand(op, input_count + i);
        constants[i] = (struct wpk_tensor_data){
            .name = wpk_kernel_constant(peer->kernel, (size_t)i)->name,
            .data = (void *)(uintptr_t)operands[input_count + i], /* read only, by wpk.h */
            .size = (size_t)bench_shape_elements(&shape) * sizeof(float),
        };
    }
    return wpk_kernel_prepare(peer->kernel, constants, (size_t)count, diag);
}

static wpk_err new_data(const struct wpk_argument *argument, struct wpk_tensor_data *out)
{
    const size_t bytes = wpk_tensor_type_bytes(&argument->type);
    out->data = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (out->data == NULL) {
        return WPK_ENOMEM;
    }
    memset(out->data, 0, bytes); /* padding of the output is zero, as that of every tensor */
    out->name = argument->name;
    out->size = bytes;
    return WPK_OK;
}

wpk_err bench_peer_open(const struct bench_case *what, const float *const *operands,
                        struct bench_peer **out, struct wpk_diag *diag)
{
    struct bench_peer *peer = calloc(1, sizeof(*peer));
    *out = peer;
    if (peer == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err = wpk_kernel_open(what->path, NULL, &peer->kernel, diag);
    if (err == WPK_OK) {
        err = check_arguments(peer, what, diag);
    }
    if (err == WPK_OK) {
        err = prepare_constants(peer, &what->op, operands, diag);
    }
    if (err == WPK_OK) {
        err = wpk_context_new(&(struct wpk_context_options){.threads = what->threads},
                              &peer->context);
    }
    if (err == WPK_OK) {
        err = new_data(wpk_kernel_output(peer->kernel, 0), &peer->output);
    }
    for (int i = 0; err == WPK_OK && i < bench_op_input_count(&what->op); i++) {
        const struct wpk_argument *input = wpk_kernel_input(peer->kernel, (size_t)i);
        err = new_data(input, &peer->inputs[i]);
        if (err == WPK_OK) {
            peer->input_count = i + 1;
            wpk_tensor_pack(&input->type, operands[i], peer->inputs[i].data);
        }
    }
    return err;
}

wpk_err bench_peer_run(struct bench_peer *peer)
{
    return wpk_kernel_run(peer->kernel, peer->context, peer->inputs, (size_t)peer->input_count,
                          &peer->output, 1);
}

wpk_err bench_peer_output(struct bench_peer *peer, float *out)
{
    wpk_tensor_unpack(&wpk_kernel_output(peer->kernel, 0)->type, peer->output.data, out);
    return WPK_OK;
}

void bench_peer_touch(struct bench_peer *peer)
{
    for (int i = 0; i < peer->input_count; i++) {
        wpk_caches_read(peer->inputs[i].data, peer->inputs[i].size);
    }
    wpk_caches_read(peer->output.data, peer->output.size);
}

const char *bench_peer_choice(const struct bench_peer *peer)
{
    (void)peer;
    return ""; /* the schedule stands in the kernel's manifest */
}

void bench_peer_close(struct bench_peer *peer)
{
    if (peer == NULL) {
        return;
    }
    wpk_context_free(peer->context);
    wpk_kernel_close(peer->kernel);
    for (int i = 0; i < peer->input_count; i++) {
        free(peer->inputs[i].data);
    }
    free(peer->output.data);
    free(peer);
}
