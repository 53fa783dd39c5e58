/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/manifest.h"

#include <stdlib.h>
#include <string.h>

/* The four lists under one roof, for what is done to each of them. */
static int list_get(const struct wpk_manifest *manifest, int list,
                    const struct wpk_named_tensor **tensors)
{
    const struct wpk_named_tensor *const all[] = {manifest->inputs, manifest->constants,
                                                  manifest->outputs, manifest->prepared};
    const int counts[] = {manifest->input_count, manifest->constant_count, manifest->output_count,
                          manifest->prepared_count};

    *tensors = all[list];
    return counts[list];
}

static const struct wpk_named_tensor *find_in(const struct wpk_named_tensor *list, int count,
                                              const char *name)
{
    int found = WPK_FIND(struct wpk_named_tensor, name, list, count, name);
    return found >= 0 ? &list[found] : NULL;
}

const struct wpk_named_tensor *wpk_manifest_find(const struct wpk_manifest *manifest,
                                                 const char *name)
{
    for (int list = 0; list < 4; list++) {
        const struct wpk_named_tensor *tensors = NULL;
        int count = list_get(manifest, list, &tensors);
        const struct wpk_named_tensor *found = find_in(tensors, count, name);
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}

/* ---- checks */

static bool list_holds(const char (*names)[WPK_NAME_MAX], int count, const char *name)
{
    int found = 0;

    for (int i = 0; i < count; i++) {
        found += strcmp(names[i], name) == 0;
    }
    return found == 1;
}

/* Every input and output is passed to main once, every prepared tensor to both; prepare sees
 * nothing else but constants. A constant may go to either, to both, or be unused. */
static void check_arguments(struct wpk_json_reader *r, void *object)
{
    const struct wpk_manifest *m = object;
    for (int i = 0; i < m->input_count; i++) {
        if (!list_holds(m->main, m->main_count, m->inputs[i].name)) {
            wpk_json_fail(r, "main", WPK_EINVAL, "input '%s' is missing", m->inputs[i].name);
        }
    }
    for (int i = 0; i < m->output_count; i++) {
        if (!list_holds(m->main, m->main_count, m->outputs[i].name)) {
            wpk_json_fail(r, "main", WPK_EINVAL, "output '%s' is missing", m->outputs[i].name);
        }
    }
    for (int i = 0; i < m->prepared_count; i++) {
        if (!list_holds(m->prepare, m->prepare_count, m->prepared[i].name)) {
            wpk_json_fail(r, "prepare", WPK_EINVAL, "'%s' is not made", m->prepared[i].name);
        }
    }
    for (int i = 0; i < m->prepare_count; i++) {
        if (find_in(m->constants, m->constant_count, m->prepare[i]) == NULL &&
            find_in(m->prepared, m->prepared_count, m->prepare[i]) == NULL) {
            wpk_json_fail(r, "prepare", WPK_EINVAL, "'%s' is no constant", m->prepare[i]);
        }
    }
    if (m->output_count == 0) {
        wpk_json_fail(r, "outputs", WPK_EINVAL, "there must be an output");
    }
}

/* A name stands once in the four lists, and programs take no other. */
static void check_names(struct wpk_json_reader *r, void *object)
{
    const struct wpk_manifest *m = object;
    for (int list = 0; list < 4; list++) {
        const struct wpk_named_tensor *tensors = NULL;
        int count = list_get(m, list, &tensors);
        for (int i = 0; i < count; i++) {
            if (wpk_manifest_find(m, tensors[i].name) != &tensors[i]) {
                wpk_json_fail(r, NULL, WPK_EINVAL, "'%s' stands here twice", tensors[i].name);
            }
            for (int d = 0; d < tensors[i].type.rank; d++) {
                if (tensors[i].type.extent[d] == 0) {
                    wpk_json_fail(r, NULL, WPK_EPARSE, "'%s' has no elements", tensors[i].name);
                }
            }
        }
    }
    for (int i = 0; i < m->main_count + m->prepare_count; i++) {
        const char *name = i < m->main_count ? m->main[i] : m->prepare[i - m->main_count];
        if (wpk_manifest_find(m, name) == NULL) {
            wpk_json_fail(r, i < m->main_count ? "main" : "prepare", WPK_EINVAL,
                          "no tensor is called '%s'", name);
        }
    }
}

static void check_indices(struct wpk_json_reader *r, void *object)
{
    const struct wpk_manifest *m = object;
    for (int i = 0; i < m->index_count; i++) {
        const struct wpk_manifest_index *index = &m->indices[i];
        const struct wpk_named_tensor *tensor = find_in(m->inputs, m->input_count, index->tensor);
        tensor = tensor != NULL ? tensor : find_in(m->constants, m->constant_count, index->tensor);
        if (tensor == NULL || wpk_dtype_is_float(tensor->type.dtype) ||
            !wpk_index_bound_fits(&index->bound, wpk_tensor_type_elements(&tensor->type))) {
            wpk_json_fail(r, "indices", WPK_EINVAL,
                          "no elements of an input or constant of integers");
        }
    }
}

/* The only output and the input have one type. */
static void check_in_place(struct wpk_json_reader *r, void *object)
{
    const struct wpk_manifest *m = object;
    const struct wpk_named_tensor *input = find_in(m->inputs, m->input_count, m->in_place);
    if (m->in_place[0] != '\0' && (input == NULL || m->output_count != 1 ||
                                   !wpk_tensor_type_equal(&input->type, &m->outputs[0].type))) {
        wpk_json_fail(r, "in_place", WPK_EINVAL, "no input of the output's type");
    }
}

/* ---- tables */

static const char *const kinds[] = {"cpu", "cuda"};
static const struct wpk_field cuda_fields[] = {
    {WPK_FIELD_INT("capability", manifest_needs, capability, 1, 999)},
    {WPK_FIELD(BOOL, "emulated", manifest_needs, emulated)},
    {WPK_FIELD_END},
};

static const struct wpk_field needs_fields[] = {
    {WPK_FIELD_CHOICE("kind", manifest_needs, cuda, kinds)},
    {WPK_FIELD_WHEN(manifest_needs, cuda, WPK_IS(0),
                    WPK_ROWS({WPK_FIELD_CUSTOM("flags", manifest_needs, flags, wpk_cpu_flags_put,
                                               wpk_cpu_flags_get)}))},
    {WPK_FIELD_WHEN(manifest_needs, cuda, WPK_IS(1), cuda_fields)},
    {WPK_FIELD_END},
};

static const struct wpk_field index_fields[] = {
    {WPK_FIELD(COPY, "tensor", manifest_index, tensor)},
    {WPK_FIELD_INT("low", manifest_index, bound.low, -WPK_JSON_INT_MAX, WPK_JSON_INT_MAX)},
    {WPK_FIELD_INT("high", manifest_index, bound.high, -WPK_JSON_INT_MAX, WPK_JSON_INT_MAX)},
    {WPK_FIELD_COUNT("first", manifest_index, bound.first)},
    {WPK_FIELD_ARRAY("strides", manifest_index, bound.stride, bound.axis_count,
                     WPK_ITEM(INT, int64_t, -WPK_JSON_INT_MAX, WPK_JSON_INT_MAX))},
    {WPK_FIELD_ARRAY("extents", manifest_index, bound.extent, bound.axis_count,
                     WPK_ITEM(INT, int64_t, 1, WPK_JSON_INT_MAX), .is_counted = true)},
    {WPK_FIELD_END},
};

static const struct wpk_field version_fields[] = {
    {WPK_FIELD(COPY, "wpk", manifest, version_wpk)},
    {WPK_FIELD(COPY, "codegen", manifest, version_codegen)},
    {WPK_FIELD_END},
};

#define TENSORS(name, list, count)                                                                 \
    WPK_FIELD_ARRAY(name, manifest, list, count, wpk_named_tensor_fields)

static const struct wpk_field manifest_fields[] = {
    {.name = "abi",
     .kind = WPK_FIELD_KIND_VERSION,
     .max = WPK_ABI_VERSION,
     .names = (const char *const[]){"build the kernel again"}},
    {WPK_FIELD_OWNED("op", manifest, op, WPK_MANIFEST_SIZE_MAX)},
    {WPK_FIELD(HASH, "fingerprint", manifest, fingerprint)},
    {WPK_FIELD_OBJECT("needs", manifest, needs, needs_fields)},
    {WPK_FIELD_INT("threads", manifest, threads, 1, 1024)},
    {TENSORS("inputs", inputs, input_count)},
    {TENSORS("constants", constants, constant_count)},
    {TENSORS("outputs", outputs, output_count)},
    {TENSORS("prepared", prepared, prepared_count)},
    {WPK_FIELD_ARRAY("main", manifest, main, main_count, WPK_ITEM(COPY, char[WPK_NAME_MAX], 0, 0))},
    {WPK_FIELD_ARRAY("prepare", manifest, prepare, prepare_count,
                     WPK_ITEM(COPY, char[WPK_NAME_MAX], 0, 0))},
    {WPK_FIELD(COPY, "in_place", manifest, in_place, WPK_OPTIONAL)},
    {WPK_FIELD_ARRAY("indices", manifest, indices, index_count, index_fields)},
    {WPK_FIELD_OWNED("algorithm", manifest, algorithm, WPK_MANIFEST_SIZE_MAX)},
    {WPK_FIELD_OWNED("candidate", manifest, candidate, WPK_MANIFEST_SIZE_MAX)},
    {WPK_FIELD_OWNED("schedule", manifest, schedule, WPK_MANIFEST_SIZE_MAX)},
    {WPK_FIELD_PART("versions", version_fields)},
    {WPK_FIELD_CHECK(check_names)},
    {WPK_FIELD_CHECK(check_arguments)},
    {WPK_FIELD_CHECK(check_in_place)},
    {WPK_FIELD_CHECK(check_indices)},
    {WPK_FIELD_END},
};

void wpk_manifest_fini(struct wpk_manifest *manifest)
{
    if (manifest != NULL) {
        wpk_fields_fini(manifest_fields, manifest);
        memset(manifest, 0, sizeof(*manifest));
    }
}

wpk_err wpk_manifest_encode(const struct wpk_manifest *manifest, char **text)
{
    struct wpk_buf buf = {.size_max = WPK_MANIFEST_SIZE_MAX};

    WPK_ASSERT(manifest->op != NULL);
    WPK_ASSERT(manifest->algorithm != NULL);
    WPK_ASSERT(manifest->candidate != NULL);
    WPK_ASSERT(manifest->schedule != NULL);
    WPK_ASSERT(manifest->threads >= 1);
    wpk_err err = wpk_fields_encode(manifest_fields, manifest, &buf);
    err = err == WPK_OK ? wpk_buf_take(&buf, text, NULL) : err;
    wpk_buf_fini(&buf);
    return err;
}

wpk_err wpk_manifest_decode(const char *text, size_t size, struct wpk_manifest *out,
                            struct wpk_diag *diag)
{
    const struct wpk_fields_text from = {text, size, WPK_MANIFEST_SIZE_MAX, NULL, false};
    struct wpk_manifest *manifest = calloc(1, sizeof(*manifest));
    if (manifest == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err = wpk_fields_decode(&from, manifest_fields, manifest, diag);
    if (err == WPK_OK) {
        *out = *manifest;
        memset(manifest, 0, sizeof(*manifest));
    }
    wpk_manifest_fini(manifest);
    free(manifest);
    return err;
}
