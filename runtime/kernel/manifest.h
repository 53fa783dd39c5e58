/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of a kernel's shared object: JSON, linked into it as binary data.
 *
 *     {"abi":4,"op":"input X ...","fingerprint":"...",
 *      "needs":{"kind":"cpu","flags":["sse4_1","avx"]},"threads":1,
 *      "inputs":[{"name":"X","type":"f32[1,128,28,28]","layout":"0,2,3,1 pad 0:0,0:0,1:1,1:1"}],
 *      "constants":[{"name":"W","type":"f32[128,128,3,3]","layout":"0,1,2,3"}],
 *      "outputs":[...],"prepared":[...],
 *      "main":["X","B","W_packed","Y"],"prepare":["W","W_packed"],"in_place":"X",
 *      "indices":[{"tensor":"I","low":-128,"high":127,"first":0,"strides":[1],"extents":[9]}],
 *      "algorithm":"direct","candidate":"...","schedule":"wpk-schedule 2\n...",
 *      "versions":{"wpk":"0.1.0","codegen":"halide-21.0.0"}}
 *
 * A GPU's kernel needs {"kind":"cuda","capability":90,"emulated":false}: a device of that
 * capability or a higher one.
 *
 * Types are logical; a layout says how the kernel wants the tensor to lie. The user gives constants
 * dense and row-major whatever their layout: libwpk packs them. The prepare program makes prepared
 * tensors from constants. `main` and `prepare` list the arguments of the two functions in the order
 * of the call: tensors that are read come first, tensors that are written last. `in_place` is there
 * only if the output may lie where that input does. `indices` lists inputs and constants whose
 * elements libwpk checks. */
#ifndef WPK_RUNTIME_KERNEL_MANIFEST_H
#define WPK_RUNTIME_KERNEL_MANIFEST_H

#include "runtime/abi.h"
#include "schema/device.h"
#include "schema/index_check.h"
#include "schema/named_tensor.h"

#include <stdbool.h>

#define WPK_MANIFEST_INDICES_MAX 64             /* more are not checked */
#define WPK_MANIFEST_SIZE_MAX ((size_t)4 << 20) /* bytes of JSON */

/* The features that a device must have to run the kernel. */
struct wpk_manifest_needs {
    bool cuda;           /* a GPU; else a CPU */
    wpk_cpu_flags flags; /* of a CPU: all of these */
    int capability;      /* of a GPU: at least this one (90: sm_90) */
    bool emulated;       /* the GPU is the emulated one, and no other */
};

/* Elements of a tensor that are indices (ir/data_index.h). */
struct wpk_manifest_index {
    char tensor[WPK_NAME_MAX]; /* an input or a constant */
    struct wpk_index_bound bound;
};

/* `= {0}` is valid to fini, not to encode. A name occurs once in the four lists of tensors. Strings
 * are owned. */
struct wpk_manifest {
    char *op;             /* whole form of the original program */
    char fingerprint[65]; /* of `op`, in hexadecimal */
    struct wpk_manifest_needs needs;
    int threads; /* >= 1: that the schedule was made for */
    struct wpk_named_tensor inputs[WPK_ABI_ARGUMENTS_MAX];
    int input_count;
    struct wpk_named_tensor constants[WPK_ABI_ARGUMENTS_MAX];
    int constant_count;
    struct wpk_named_tensor outputs[WPK_ABI_ARGUMENTS_MAX];
    int output_count;
    struct wpk_named_tensor prepared[WPK_ABI_ARGUMENTS_MAX];
    int prepared_count;
    char main[WPK_ABI_ARGUMENTS_MAX][WPK_NAME_MAX];
    int main_count;
    char prepare[WPK_ABI_ARGUMENTS_MAX][WPK_NAME_MAX];
    int prepare_count;           /* 0: there is no prepare program */
    char in_place[WPK_NAME_MAX]; /* the input whose memory the output may be; "": none */
    struct wpk_manifest_index indices[WPK_MANIFEST_INDICES_MAX];
    int index_count;
    char *algorithm;
    char *candidate; /* genes as text */
    char *schedule;  /* its text; the kernel can be rebuilt from it */
    char version_wpk[32];
    char version_codegen[64]; /* "halide-21.0.0" */
};

void wpk_manifest_fini(struct wpk_manifest *manifest);

/* Write the manifest as JSON.
 *   owns    caller frees *text
 *   errors  WPK_ENOMEM; WPK_ENOSPC longer than WPK_MANIFEST_SIZE_MAX */
wpk_err wpk_manifest_encode(const struct wpk_manifest *manifest, char **text);

/* Read a manifest strictly: every field is there and no other, names are known and unique, and
 * prepared tensors appear exactly when there is a prepare program.
 *   owns    caller calls wpk_manifest_fini
 *   errors  WPK_EPARSE, WPK_EINVAL, WPK_ERANGE: `diag` names the field; WPK_EMISMATCH another ABI;
 *           WPK_ENOMEM */
wpk_err wpk_manifest_decode(const char *text, size_t size, struct wpk_manifest *out,
                            struct wpk_diag *diag);

/* The tensor called `name` in the four lists; NULL if there is none. */
const struct wpk_named_tensor *wpk_manifest_find(const struct wpk_manifest *manifest,
                                                 const char *name);

#endif
