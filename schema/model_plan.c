/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/model_plan.h"

#include "common/crypto.h"
#include "schema/named_tensor.h"

#include <string.h>

#define MAGIC "WPKPLAN\n"
#define NODE_MAX ((size_t)4096) /* bytes of a name */
#define WORK_MAX 1e18           /* operations or bytes of one call */

struct header {
    char magic[8];
    uint32_t version;
    uint32_t zero;
    uint64_t manifest_size;
    uint64_t data_size;
    uint8_t sha256[WPK_SHA256_SIZE];
};

_Static_assert(sizeof(struct header) == 64, "the header has no padding");

void wpk_model_plan_fini(struct wpk_model_plan *plan)
{
    if (plan != NULL) {
        wpk_arena_fini(&plan->arena);
        *plan = (struct wpk_model_plan){.threads = 0};
    }
}

static const char *const host_names[] = {"scatter", "top_k", "top_k_indices", "non_zero", "copy"};
WPK_LIST_NAME(wpk_model_plan_host_name, enum wpk_model_plan_host_op, host_names)

const struct wpk_model_plan_loop *wpk_model_plan_find_loop(const struct wpk_model_plan_shape *shape,
                                                           int step)
{
    for (int l = 0; l < shape->loop_count; l++) {
        const struct wpk_model_plan_loop *loop = &shape->loops[l];
        if (loop->first <= step && step < loop->first + loop->count) {
            return loop;
        }
    }
    return NULL;
}

/* ---- checks: of what is read, every index, offset and size */

/* Bytes of the value's place. */
static uint64_t room_of(const struct wpk_model_plan *plan, const struct wpk_model_plan_shape *shape,
                        const struct wpk_model_plan_value *value)
{
    return value->place == WPK_MODEL_PLAN_DATA ? plan->data_size : (uint64_t)shape->arena_size;
}

static void check_value(struct wpk_json_reader *r, const struct wpk_model_plan *plan,
                        const struct wpk_model_plan_shape *shape,
                        const struct wpk_model_plan_value *value)
{
    if (!wpk_layout_is_ordered(&value->type.layout) ||
        (value->place != WPK_MODEL_PLAN_ARENA && !wpk_layout_is_row_major(&value->type.layout))) {
        wpk_json_fail(r, "values", WPK_EINVAL, "a layout that values do not have here");
        return;
    }
    uint64_t size = wpk_tensor_type_bytes(&value->type);
    uint64_t room = room_of(plan, shape, value);
    int64_t item = (int64_t)wpk_dtype_size(value->type.dtype);
    bool is_memory = value->place == WPK_MODEL_PLAN_ARENA || value->place == WPK_MODEL_PLAN_DATA;
    int ends = value->place == WPK_MODEL_PLAN_INPUT ? shape->input_count : shape->output_count;
    if (is_memory
            ? value->offset % item != 0 || size > room || (uint64_t)value->offset > room - size
            : value->offset >= ends) {
        wpk_json_fail(r, "values", WPK_ERANGE, "a value lies outside of its place");
    }
    if (value->stride != 0 && (!is_memory || value->stride % item != 0)) {
        wpk_json_fail(r, "values", WPK_EINVAL, "a value that no loop can move");
    }
}

/* The end has the name that it has in the first shape. */
static void check_end(struct wpk_json_reader *r, const struct wpk_model_plan_shape *shape,
                      const struct wpk_model_plan_end *end, const struct wpk_model_plan_end *same)
{
    if (strcmp(end->name, same->name) != 0) {
        wpk_json_fail(r, "shapes", WPK_EINVAL, "another name than in the first shape");
    }
    if (end->value >= shape->value_count) {
        wpk_json_fail(r, "shapes", WPK_ERANGE, "an end has value %d", end->value);
    } else if (shape->values[end->value].stride != 0) {
        wpk_json_fail(r, "shapes", WPK_EINVAL, "an end is a value of a loop");
    }
    if (end->domain.low > end->domain.high) {
        wpk_json_fail(r, "shapes", WPK_ERANGE, "the domain of %s is empty", end->name);
    }
}

static void check_ends(struct wpk_json_reader *r, const struct wpk_model_plan_shape *first,
                       const struct wpk_model_plan_shape *shape)
{
    if (shape->input_count != first->input_count || shape->output_count != first->output_count) {
        wpk_json_fail(r, "shapes", WPK_EINVAL, "other inputs or outputs than in the first shape");
        return;
    }
    for (int i = 0; i < shape->output_count; i++) {
        check_end(r, shape, &shape->outputs[i], &first->outputs[i]);
    }
    for (int i = 0; i < shape->input_count && wpk_json_status(r) == WPK_OK; i++) {
        check_end(r, shape, &shape->inputs[i], &first->inputs[i]);
        int value = shape->inputs[i].value;
        if (value < shape->value_count && (shape->values[value].place != WPK_MODEL_PLAN_INPUT ||
                                           shape->values[value].offset != i)) {
            wpk_json_fail(r, "shapes", WPK_EINVAL, "the value of an input lies elsewhere");
        }
    }
}

static void check_step(struct wpk_json_reader *r, const struct wpk_model_plan *plan,
                       const struct wpk_model_plan_shape *shape,
                       const struct wpk_model_plan_step *step)
{
    if (step->kernel >= plan->kernel_count || (step->kernel < 0 && step->host.extent == 0)) {
        wpk_json_fail(r, "shapes", WPK_ERANGE, "nothing computes a step");
    }
    for (int a = 0; a < step->argument_count; a++) {
        if (step->arguments[a].value >= shape->value_count) {
            wpk_json_fail(r, "shapes", WPK_ERANGE, "a step has value %d", step->arguments[a].value);
        }
    }
}

/* True if the value is inside of its place in every iteration of the loop; NULL: there is none. */
static bool stays_inside(const struct wpk_model_plan *plan,
                         const struct wpk_model_plan_shape *shape,
                         const struct wpk_model_plan_loop *loop,
                         const struct wpk_model_plan_value *value)
{
    int64_t last = value->offset;
    int64_t way = 0;

    return value->stride == 0 ||
           (loop != NULL && !__builtin_mul_overflow(value->stride, loop->times - 1, &way) &&
            !__builtin_add_overflow(last, way, &last) && last >= 0 &&
            (uint64_t)last <= room_of(plan, shape, value) - wpk_tensor_type_bytes(&value->type));
}

static void check_strides(struct wpk_json_reader *r, const struct wpk_model_plan *plan,
                          const struct wpk_model_plan_shape *shape)
{
    int next = 0; /* loop */

    for (int s = 0; s < shape->step_count; s++) {
        while (next < shape->loop_count &&
               shape->loops[next].first + shape->loops[next].count <= s) {
            next++;
        }
        const struct wpk_model_plan_loop *loop =
            next < shape->loop_count && shape->loops[next].first <= s ? &shape->loops[next] : NULL;
        for (int a = 0; a < shape->steps[s].argument_count; a++) {
            if (!stays_inside(plan, shape, loop,
                              &shape->values[shape->steps[s].arguments[a].value])) {
                wpk_json_fail(r, "loops", WPK_ERANGE, "a value leaves its place in a loop");
                return;
            }
        }
    }
}

static void check_loops(struct wpk_json_reader *r, const struct wpk_model_plan_shape *shape)
{
    int least = 0;
    for (int l = 0; l < shape->loop_count; l++) {
        const struct wpk_model_plan_loop *loop = &shape->loops[l];
        if (loop->first < least || loop->count > shape->step_count - loop->first) {
            wpk_json_fail(r, "shapes", WPK_ERANGE, "steps of another loop, or none");
        }
        least = loop->first + loop->count;
    }
}

static void check_plan(struct wpk_json_reader *r, void *object)
{
    const struct wpk_model_plan *plan = object;
    int64_t room = (int64_t)plan->data_size;
    for (int i = 0; i < plan->kernel_count; i++) {
        const struct wpk_model_plan_kernel *kernel = &plan->kernels[i];
        if (kernel->size > room || kernel->offset > room - kernel->size) {
            wpk_json_fail(r, "kernels", WPK_ERANGE, "a kernel lies outside of the data");
        }
    }
    for (int i = 0; i < plan->shape_count && wpk_json_status(r) == WPK_OK; i++) {
        const struct wpk_model_plan_shape *shape = &plan->shapes[i];
        for (int v = 0; v < shape->value_count; v++) {
            check_value(r, plan, shape, &shape->values[v]);
        }
        check_ends(r, &plan->shapes[0], shape);
        for (int s = 0; s < shape->step_count; s++) {
            check_step(r, plan, shape, &shape->steps[s]);
        }
        check_loops(r, shape);
        if (wpk_json_status(r) == WPK_OK) {
            check_strides(r, plan, shape);
        }
    }
}

/* ---- tables */

static void put_checksum(struct wpk_json_writer *w, const char *key, const void *object)
{
    const struct wpk_model_plan *plan = object;
    char checksum[WPK_CHECKSUM_HEX_SIZE];
    wpk_checksum_hex(plan->data, plan->data_size, checksum);
    wpk_json_put_text(w, key, checksum);
}

static void get_checksum(struct wpk_json_reader *r, const char *key, void *object)
{
    const struct wpk_model_plan *plan = object;
    char checksum[WPK_CHECKSUM_HEX_SIZE];
    wpk_checksum_hex(plan->data, plan->data_size, checksum);
    if (strcmp(wpk_json_get_text(r, key, WPK_CHECKSUM_HEX_SIZE), checksum) != 0) {
        wpk_json_fail(r, key, WPK_ECORRUPT, "its kernels or constants were changed");
    }
}

#define LIST(name, type, member, count, most, rows, ...)                                           \
    WPK_FIELD_LIST(name, type, member, count, WPK_MODEL_PLAN_##most##_MAX, rows, __VA_ARGS__)
#define SIZE(name, type, member, least)                                                            \
    WPK_FIELD_INT(name, type, member, least, WPK_MODEL_PLAN_ARENA_MAX)

static const struct wpk_field kernel_fields[] = {
    {SIZE("offset", model_plan_kernel, offset, 0)},
    {SIZE("size", model_plan_kernel, size, 1)},
    {WPK_FIELD(COPY, "name", model_plan_kernel, name)},
    {WPK_FIELD_REAL("flops", model_plan_kernel, flops, 0, WORK_MAX)},
    {WPK_FIELD_REAL("bytes", model_plan_kernel, bytes, 0, WORK_MAX)},
    {WPK_FIELD_COUNT("time_ns", model_plan_kernel, time_ns)},
    {WPK_FIELD(COPY, "vendor", model_plan_kernel, vendor)},
    {WPK_FIELD_COUNT("vendor_ns", model_plan_kernel, vendor_ns)},
    {WPK_FIELD_END},
};

static const struct wpk_field value_fields[] = {
    {WPK_FIELD_INT("place", model_plan_value, place, 0, WPK_MODEL_PLAN_PLACE_COUNT - 1)},
    {SIZE("offset", model_plan_value, offset, 0)},
    {WPK_FIELD(BOOL, "part", model_plan_value, is_part)},
    {SIZE("stride", model_plan_value, stride, -WPK_MODEL_PLAN_ARENA_MAX)},
    {WPK_FIELD_GROUP(model_plan_value, type, wpk_tensor_type_fields)},
    {WPK_FIELD_END},
};

static const struct wpk_field end_fields[] = {
    {WPK_FIELD_TEXT("name", model_plan_end, name, NODE_MAX)},
    {WPK_FIELD_INT("value", model_plan_end, value, 0, INT32_MAX)},
    {WPK_FIELD_REAL("low", model_plan_end, domain.low, -WPK_DOMAIN_MOST, WPK_DOMAIN_MOST)},
    {WPK_FIELD_REAL("high", model_plan_end, domain.high, -WPK_DOMAIN_MOST, WPK_DOMAIN_MOST)},
    {WPK_FIELD_END},
};

static const struct wpk_field host_fields[] = {
    {WPK_FIELD_INT("op", model_plan_host, op, 0, WPK_MODEL_PLAN_HOST_COUNT - 1)},
    {SIZE("before", model_plan_host, before, 1)},
    {SIZE("extent", model_plan_host, extent, 1)},
    {SIZE("after", model_plan_host, after, 1)},
    {SIZE("count", model_plan_host, count, 1)},
    {WPK_FIELD(BOOL, "smallest", model_plan_host, is_smallest)},
    {WPK_FIELD_INT("axis", model_plan_host, axis, -1, WPK_RANK_MAX - 1)},
    {WPK_FIELD_INT("reduction", model_plan_host, reduction, 0, WPK_SCATTER_COUNT - 1)},
    {WPK_FIELD_END},
};

static const struct wpk_field argument_fields[] = {
    {WPK_FIELD(COPY, "name", model_plan_argument, name)},
    {WPK_FIELD_INT("value", model_plan_argument, value, 0, INT32_MAX)},
    {WPK_FIELD_END},
};

static const struct wpk_field step_fields[] = {
    {WPK_FIELD_INT("kernel", model_plan_step, kernel, -1, WPK_MODEL_PLAN_STEPS_MAX)},
    {WPK_FIELD_OBJECT("host", model_plan_step, host, host_fields, WPK_OPTIONAL)},
    {WPK_FIELD_TEXT("node", model_plan_step, node, NODE_MAX)},
    {LIST("arguments", model_plan_step, arguments, argument_count, ARGUMENTS, argument_fields)},
    {WPK_FIELD_END},
};

static const struct wpk_field loop_fields[] = {
    {WPK_FIELD_INT("first", model_plan_loop, first, 0, WPK_MODEL_PLAN_STEPS_MAX)},
    {WPK_FIELD_INT("count", model_plan_loop, count, 1, WPK_MODEL_PLAN_STEPS_MAX)},
    {SIZE("times", model_plan_loop, times, 1)},
    {WPK_FIELD_END},
};

static const struct wpk_field note_fields[] = {
    {WPK_FIELD_TEXT("node", model_plan_note, node, NODE_MAX)},
    {WPK_FIELD_TEXT("why", model_plan_note, why, NODE_MAX)},
    {WPK_FIELD_END},
};

static const struct wpk_field shape_fields[] = {
    {SIZE("arena_size", model_plan_shape, arena_size, 0)},
    {LIST("values", model_plan_shape, values, value_count, VALUES, value_fields)},
    {LIST("inputs", model_plan_shape, inputs, input_count, ENDS, end_fields)},
    {LIST("outputs", model_plan_shape, outputs, output_count, ENDS, end_fields)},
    {LIST("steps", model_plan_shape, steps, step_count, STEPS, step_fields)},
    {LIST("loops", model_plan_shape, loops, loop_count, STEPS, loop_fields)},
    {LIST("notes", model_plan_shape, notes, note_count, STEPS, note_fields)},
    {WPK_FIELD_END},
};

static const struct wpk_field plan_fields[] = {
    {WPK_FIELD(COPY, "device", model_plan, device)},
    {WPK_FIELD_INT("threads", model_plan, threads, 1, 1024)},
    {.name = "data_checksum",
     .kind = WPK_FIELD_KIND_CUSTOM,
     .put = put_checksum,
     .get = get_checksum},
    {LIST("kernels", model_plan, kernels, kernel_count, STEPS, kernel_fields)},
    {LIST("shapes", model_plan, shapes, shape_count, SHAPES, shape_fields, .min = 1)},
    {WPK_FIELD_CHECK(check_plan)},
    {WPK_FIELD_END},
};

/* ---- files */

wpk_err wpk_model_plan_encode(const struct wpk_model_plan *plan, struct wpk_buf *out)
{
    static const char zeros[WPK_MODEL_PLAN_SLACK];
    struct wpk_buf manifest = {.size_max = WPK_MODEL_PLAN_MANIFEST_MAX};
    struct header header = {.magic = MAGIC, .version = WPK_MODEL_PLAN_VERSION};

    wpk_err err = wpk_fields_encode(plan_fields, plan, &manifest);
    if (err == WPK_OK) {
        header.manifest_size = manifest.size;
        header.data_size = plan->data_size;
        wpk_crypto_sha256(manifest.data, manifest.size, header.sha256);
        wpk_buf_append(out, &header, sizeof(header));
        wpk_buf_append(out, manifest.data, manifest.size);
        wpk_buf_append(out, zeros, WPK_MODEL_PLAN_ALIGN(manifest.size) - manifest.size);
        wpk_buf_append(out, plan->data, plan->data_size);
        wpk_buf_append(out, zeros, WPK_MODEL_PLAN_SLACK);
        err = wpk_buf_status(out);
    }
    wpk_buf_fini(&manifest);
    return err;
}

wpk_err wpk_model_plan_decode(const void *bytes, size_t size, struct wpk_model_plan *out,
                              struct wpk_diag *diag)
{
    struct header header;
    uint8_t sha256[WPK_SHA256_SIZE];
    const char *text = (const char *)bytes + sizeof(header);

    *out = (struct wpk_model_plan){.threads = 0};
    if (size < sizeof(header) || memcmp(bytes, MAGIC, sizeof(header.magic)) != 0) {
        return wpk_fail(diag, WPK_ECORRUPT,
                        "not a model's plan; wpkctl tune MODEL.onnx -o FILE.wpk writes one");
    }
    memcpy(&header, bytes, sizeof(header));
    if (header.version != WPK_MODEL_PLAN_VERSION) {
        return wpk_fail(diag, WPK_EMISMATCH,
                        "a plan of version %u; this is version %d: tune the model again",
                        header.version, WPK_MODEL_PLAN_VERSION);
    }
    size_t room = size - sizeof(header);
    if (header.manifest_size > WPK_MODEL_PLAN_MANIFEST_MAX ||
        WPK_MODEL_PLAN_ALIGN(header.manifest_size) + WPK_MODEL_PLAN_SLACK > room ||
        header.data_size !=
            room - WPK_MODEL_PLAN_ALIGN(header.manifest_size) - WPK_MODEL_PLAN_SLACK) {
        return wpk_fail(diag, WPK_ECORRUPT, "the plan is cut short, or its header was changed");
    }
    for (int i = 0; i < WPK_MODEL_PLAN_SLACK; i++) {
        if (text[room - WPK_MODEL_PLAN_SLACK + (size_t)i] != 0) {
            return wpk_fail(diag, WPK_ECORRUPT, "the plan's end was changed");
        }
    }
    wpk_crypto_sha256(text, header.manifest_size, sha256);
    if (memcmp(sha256, header.sha256, sizeof(sha256)) != 0) {
        return wpk_fail(diag, WPK_ECORRUPT, "the plan's manifest was changed");
    }
    out->data = text + WPK_MODEL_PLAN_ALIGN(header.manifest_size);
    out->data_size = header.data_size;
    const struct wpk_fields_text from = {text, header.manifest_size, WPK_MODEL_PLAN_MANIFEST_MAX,
                                         &out->arena, false};
    wpk_err err = wpk_fields_decode(&from, plan_fields, out, diag);
    if (err != WPK_OK && diag != NULL) { /* of no use: nobody reads the manifest as text */
        diag->line = diag->column = 0;
        diag->field[0] = '\0';
    }
    return err == WPK_OK || err == WPK_ENOMEM ? err : WPK_ECORRUPT;
}
