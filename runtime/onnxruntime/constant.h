/* SPDX-License-Identifier: Apache-2.0 */
/* The constants of a twin.
 *
 * ONNX Runtime releases the constants of a claimed group that was compiled. A constant that lies
 * in a file of its own (ONNX's "external data") is mapped, as ONNX Runtime maps it; any other is
 * copied once, into memory that the twin's session frees as soon as it has packed the constant. */
#ifndef WPK_RUNTIME_ONNXRUNTIME_CONSTANT_H
#define WPK_RUNTIME_ONNXRUNTIME_CONSTANT_H

#include "runtime/onnxruntime/ort.h"

/* Files that constants are mapped from; they outlive the session. `= {0}` is empty. */
struct wpk_constant_files {
    struct wpk_constant_mapping *mappings; /* owned, [count] */
    size_t count;
};

/* Unmap all. */
void wpk_constant_files_fini(struct wpk_constant_files *files);

/* Add the constant `info` to `graph` under its name.
 *
 *   model_path  the model's file, beside which files of constants lie; "" for one out of memory
 */
struct ort_status *wpk_constant_add(const struct wpk_ort *ort, struct wpk_arena *arena,
                                    const struct ort_value_info *info, const char *model_path,
                                    struct wpk_constant_files *files, struct ort_graph *graph);

#endif
