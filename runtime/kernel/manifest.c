/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/manifest.h"

#include "common/crypto.h"
#include "common/json.h"

#include <stdlib.h>
#include <string.h>

void wpk_manifest_fini(struct wpk_manifest *manifest)
{
    if (manifest == NULL) {
        return;
    }
    free(manifest->op);
    free(manifest->algorithm);
    free(manifest->candidate);
    free(manifest->schedule);
    memset(manifest, 0, sizeof(*manifest));
}

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

const struct wpk_named_tensor *wpk_manifest_find(const struct wpk_manifest *manifest,
                                                 const char *name)
{
    for (int list = 0; list < 4; list++) {
        const struct wpk_named_tensor *tensors = NULL;
        int count = list_get(manifest, list, &tensors);
        for (int i = 0; i < count; i++) {
            if (strcmp(tensors[i].name, name) == 0) {
                return &tensors[i];
            }
        }
    }
    return NULL;
}

/* ---- out */

static void put_names(struct wpk_json_writer *w, const char *key, const char (*names)[WPK_NAME_MAX],
                      int count)
{
    wpk_json_begin_array(w, key);
    for (int i = 0; i < count; i++) {
        wpk_json_put_text(w, NULL, names[i]);
    }
    wpk_json_end(w);
}

static const char *const kinds[] = {"cpu", "cuda"};

static void put_numbers(struct wpk_json_writer *w, const char *key, const int64_t *numbers,
                        int count)
{
    wpk_json_begin_array(w, key);
    for (int i = 0; i < count; i++) {
        wpk_json_put_int(w, NULL, numbers[i]);
    }
    wpk_json_end(w);
}

static void put_index(struct wpk_json_writer *w, const struct wpk_manifest_index *index)
{
    wpk_json_begin_object(w, NULL);
    wpk_json_put_text(w, "tensor", index->tensor);
    wpk_json_put_int(w, "low", index->bound.low);
    wpk_json_put_int(w, "high", index->bound.high);
    wpk_json_put_int(w, "first", index->bound.first);
    put_numbers(w, "strides", index->bound.stride, index->bound.axis_count);
    put_numbers(w, "extents", index->bound.extent, index->bound.axis_count);
    wpk_json_end(w);
}

static wpk_err put_manifest(struct wpk_json_writer *w, const struct wpk_manifest *m)
{
    static const char *const keys[] = {"inputs", "constants", "outputs", "prepared"};

    wpk_json_put_int(w, "abi", WPK_ABI_VERSION);
    wpk_json_put_text(w, "op", m->op);
    wpk_json_put_text(w, "fingerprint", m->fingerprint);
    const struct wpk_manifest_needs *needs = &m->needs;
    wpk_json_begin_object(w, "needs");
    wpk_json_put_text(w, "kind", kinds[needs->cuda]);
    if (needs->cuda) {
        wpk_json_put_int(w, "capability", needs->capability);
        wpk_json_put_bool(w, "emulated", needs->emulated);
    } else {
        wpk_cpu_flags_put(w, "flags", needs->flags);
    }
    wpk_json_end(w);
    wpk_json_put_int(w, "threads", m->threads);
    for (int list = 0; list < 4; list++) {
        const struct wpk_named_tensor *tensors = NULL;
        int count = list_get(m, list, &tensors);
        wpk_err err = wpk_named_tensors_put(w, keys[list], tensors, count);
        if (err != WPK_OK) {
            return err;
        }
    }
    put_names(w, "main", m->main, m->main_count);
    put_names(w, "prepare", m->prepare, m->prepare_count);
    if (m->in_place[0] != '\0') {
        wpk_json_put_text(w, "in_place", m->in_place);
    }
    wpk_json_begin_array(w, "indices");
    for (int i = 0; i < m->index_count; i++) {
        put_index(w, &m->indices[i]);
    }
    wpk_json_end(w);
    wpk_json_put_text(w, "algorithm", m->algorithm);
    wpk_json_put_text(w, "candidate", m->candidate);
    wpk_json_put_text(w, "schedule", m->schedule);
    wpk_json_begin_object(w, "versions");
    wpk_json_put_text(w, "wpk", m->version_wpk);
    wpk_json_put_text(w, "codegen", m->version_codegen);
    wpk_json_end(w);
    return WPK_OK;
}

wpk_err wpk_manifest_encode(const struct wpk_manifest *manifest, char **text)
{
    struct wpk_buf buf = {.size_max = WPK_MANIFEST_SIZE_MAX};

    WPK_ASSERT(manifest->op != NULL);
    WPK_ASSERT(manifest->algorithm != NULL);
    WPK_ASSERT(manifest->candidate != NULL);
    WPK_ASSERT(manifest->schedule != NULL);
    WPK_ASSERT(manifest->threads >= 1);
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_err err = put_manifest(w, manifest);
    if (err == WPK_OK) {
        err = wpk_json_print(w, false, &buf);
    }
    wpk_json_writer_free(w);
    if (err == WPK_OK) {
        err = wpk_buf_take(&buf, text, NULL);
    }
    wpk_buf_fini(&buf);
    return err;
}

/* ---- in */

static void get_tensors(struct wpk_json_reader *r, const char *key,
                        const struct wpk_manifest *manifest, struct wpk_named_tensor *out,
                        int *count)
{
    wpk_json_enter_array(r, key);
    while (wpk_json_next(r)) {
        struct wpk_named_tensor tensor = {0};
        wpk_named_tensor_get(r, &tensor);
        if (*count == WPK_ABI_ARGUMENTS_MAX) {
            wpk_json_fail(r, NULL, WPK_ERANGE, "more than %d tensors", WPK_ABI_ARGUMENTS_MAX);
        } else if (wpk_manifest_find(manifest, tensor.name) != NULL) {
            wpk_json_fail(r, NULL, WPK_EINVAL, "'%s' stands here twice", tensor.name);
        } else {
            out[(*count)++] = tensor;
        }
    }
    wpk_json_leave(r);
}

static void get_names(struct wpk_json_reader *r, const char *key,
                      const struct wpk_manifest *manifest, char (*out)[WPK_NAME_MAX], int *count)
{
    wpk_json_enter_array(r, key);
    while (wpk_json_next(r)) {
        char name[WPK_NAME_MAX] = "";
        wpk_json_get_copy(r, NULL, name, sizeof(name));
        if (*count == WPK_ABI_ARGUMENTS_MAX) {
            wpk_json_fail(r, NULL, WPK_ERANGE, "more than %d arguments", WPK_ABI_ARGUMENTS_MAX);
        } else if (wpk_manifest_find(manifest, name) == NULL) {
            wpk_json_fail(r, NULL, WPK_EINVAL, "no tensor is called '%s'", name);
        } else {
            memcpy(out[(*count)++], name, sizeof(name));
        }
    }
    wpk_json_leave(r);
}

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
static void check_arguments(struct wpk_json_reader *r, const struct wpk_manifest *m)
{
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
        bool known = false;
        for (int k = 0; k < m->constant_count; k++) {
            known = known || strcmp(m->prepare[i], m->constants[k].name) == 0;
        }
        for (int k = 0; k < m->prepared_count; k++) {
            known = known || strcmp(m->prepare[i], m->prepared[k].name) == 0;
        }
        if (!known) {
            wpk_json_fail(r, "prepare", WPK_EINVAL, "'%s' is no constant", m->prepare[i]);
        }
    }
    if (m->output_count == 0) {
        wpk_json_fail(r, "outputs", WPK_EINVAL, "there must be an output");
    }
}

static const struct wpk_named_tensor *find_in(const struct wpk_named_tensor *list, int count,
                                              const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return &list[i];
        }
    }
    return NULL;
}

static int get_numbers(struct wpk_json_reader *r, const char *key, int64_t low, int64_t *out)
{
    int count = 0;

    wpk_json_enter_array(r, key);
    while (wpk_json_next(r)) {
        int64_t number = wpk_json_get_int(r, NULL, low, WPK_JSON_INT_MAX);
        if (count == WPK_INDEX_AXES_MAX) {
            wpk_json_fail(r, NULL, WPK_ERANGE, "more than %d axes", WPK_INDEX_AXES_MAX);
            break;
        }
        out[count++] = number;
    }
    wpk_json_leave(r);
    return count;
}

static void get_index(struct wpk_json_reader *r, const struct wpk_manifest *m,
                      struct wpk_manifest_index *out)
{
    struct wpk_index_bound *bound = &out->bound;

    WPK_JSON_ALLOW(r, "tensor", "low", "high", "first", "strides", "extents");
    wpk_json_get_copy(r, "tensor", out->tensor, sizeof(out->tensor));
    bound->low = wpk_json_get_int(r, "low", -WPK_JSON_INT_MAX, WPK_JSON_INT_MAX);
    bound->high = wpk_json_get_int(r, "high", -WPK_JSON_INT_MAX, WPK_JSON_INT_MAX);
    bound->first = wpk_json_get_int(r, "first", 0, WPK_JSON_INT_MAX);
    bound->axis_count = get_numbers(r, "strides", -WPK_JSON_INT_MAX, bound->stride);
    int extents = get_numbers(r, "extents", 1, bound->extent);
    const struct wpk_named_tensor *tensor = find_in(m->inputs, m->input_count, out->tensor);
    tensor = tensor != NULL ? tensor : find_in(m->constants, m->constant_count, out->tensor);
    int64_t count = 1;
    for (int d = 0; tensor != NULL && d < tensor->type.rank; d++) {
        count *= tensor->type.extent[d];
    }
    if (tensor == NULL || wpk_dtype_is_float(tensor->type.dtype) || extents != bound->axis_count ||
        (wpk_json_status(r) == WPK_OK && !wpk_index_bound_fits(bound, count))) {
        wpk_json_fail(r, "tensor", WPK_EINVAL, "no elements of an input or constant of integers");
    }
}

/* The only output and the input have one type. */
static void get_in_place(struct wpk_json_reader *r, struct wpk_manifest *m)
{
    if (!wpk_json_has(r, "in_place")) {
        return;
    }
    wpk_json_get_copy(r, "in_place", m->in_place, sizeof(m->in_place));
    const struct wpk_named_tensor *input = find_in(m->inputs, m->input_count, m->in_place);
    if (input == NULL || m->output_count != 1 ||
        !wpk_tensor_type_equal(&input->type, &m->outputs[0].type)) {
        wpk_json_fail(r, "in_place", WPK_EINVAL, "no input of the output's type");
    }
}

static char *get_owned(struct wpk_json_reader *r, const char *key)
{
    char *copy = strdup(wpk_json_get_text(r, key, WPK_MANIFEST_SIZE_MAX));

    if (copy == NULL) {
        wpk_json_fail(r, key, WPK_ENOMEM, "out of memory");
    }
    return copy;
}

static void get_manifest(struct wpk_json_reader *r, struct wpk_manifest *m)
{
    WPK_JSON_ALLOW(r, "abi", "op", "fingerprint", "needs", "threads", "inputs", "constants",
                   "outputs", "prepared", "main", "prepare", "in_place", "indices", "algorithm",
                   "candidate", "schedule", "versions");
    m->op = get_owned(r, "op");
    wpk_json_get_copy(r, "fingerprint", m->fingerprint, sizeof(m->fingerprint));
    if (!wpk_crypto_hex_valid(m->fingerprint, sizeof(m->fingerprint) / 2)) {
        wpk_json_fail(r, "fingerprint", WPK_EINVAL, "not a SHA-256 in hexadecimal");
    }
    struct wpk_manifest_needs *needs = &m->needs;
    wpk_json_enter(r, "needs");
    needs->cuda = wpk_json_get_choice(r, "kind", kinds, 2) == 1;
    if (needs->cuda) {
        WPK_JSON_ALLOW(r, "kind", "capability", "emulated");
        needs->capability = (int)wpk_json_get_int(r, "capability", 1, 999);
        needs->emulated = wpk_json_get_bool(r, "emulated");
    } else {
        WPK_JSON_ALLOW(r, "kind", "flags");
        needs->flags = wpk_cpu_flags_get(r, "flags");
    }
    wpk_json_leave(r);
    m->threads = (int)wpk_json_get_int(r, "threads", 1, 1024);
    get_tensors(r, "inputs", m, m->inputs, &m->input_count);
    get_tensors(r, "constants", m, m->constants, &m->constant_count);
    get_tensors(r, "outputs", m, m->outputs, &m->output_count);
    get_tensors(r, "prepared", m, m->prepared, &m->prepared_count);
    get_names(r, "main", m, m->main, &m->main_count);
    get_names(r, "prepare", m, m->prepare, &m->prepare_count);
    get_in_place(r, m);
    wpk_json_enter_array(r, "indices");
    while (wpk_json_next(r)) {
        if (m->index_count == WPK_MANIFEST_INDICES_MAX) {
            wpk_json_fail(r, NULL, WPK_ERANGE, "more than %d", WPK_MANIFEST_INDICES_MAX);
            break;
        }
        get_index(r, m, &m->indices[m->index_count++]);
    }
    wpk_json_leave(r);
    m->algorithm = get_owned(r, "algorithm");
    m->candidate = get_owned(r, "candidate");
    m->schedule = get_owned(r, "schedule");
    wpk_json_enter(r, "versions");
    WPK_JSON_ALLOW(r, "wpk", "codegen");
    wpk_json_get_copy(r, "wpk", m->version_wpk, sizeof(m->version_wpk));
    wpk_json_get_copy(r, "codegen", m->version_codegen, sizeof(m->version_codegen));
    wpk_json_leave(r);
    check_arguments(r, m);
}

wpk_err wpk_manifest_decode(const char *text, size_t size, struct wpk_manifest *out,
                            struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;
    struct wpk_manifest *manifest = NULL;

    wpk_err err = wpk_json_open(text, size, WPK_MANIFEST_SIZE_MAX, &r, diag);
    if (err != WPK_OK) {
        return err;
    }
    manifest = calloc(1, sizeof(*manifest));
    if (manifest == NULL) {
        err = WPK_ENOMEM;
        goto done;
    }
    /* Another ABI may have other fields: it is told apart before anything else is looked at. */
    int64_t abi = wpk_json_get_int(r, "abi", 0, WPK_JSON_INT_MAX);
    if (wpk_json_status(r) == WPK_OK && abi != WPK_ABI_VERSION) {
        wpk_json_fail(r, "abi", WPK_EMISMATCH, "the kernel has ABI %lld, this is ABI %d",
                      (long long)abi, WPK_ABI_VERSION);
    }
    if (wpk_json_status(r) == WPK_OK) {
        get_manifest(r, manifest);
    }
    err = wpk_json_status(r);
    if (err == WPK_OK) {
        *out = *manifest;
        memset(manifest, 0, sizeof(*manifest));
    }
done:
    wpk_manifest_fini(manifest);
    free(manifest);
    wpk_json_close(r);
    return err;
}
