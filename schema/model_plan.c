/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/model_plan.h"

#include "common/crypto.h"
#include "common/json.h"
#include "schema/named_tensor.h"

#include <stdio.h>
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

const char *wpk_model_plan_host_name(enum wpk_model_plan_host_op op)
{
    static const char *const names[WPK_MODEL_PLAN_HOST_COUNT] = {
        "scatter", "top_k", "top_k_indices", "non_zero", "copy"};
    WPK_ASSERT(op < WPK_MODEL_PLAN_HOST_COUNT);
    return names[op];
}

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

static size_t align(size_t size)
{
    return (size + WPK_MODEL_PLAN_ALIGNMENT - 1) / WPK_MODEL_PLAN_ALIGNMENT *
           WPK_MODEL_PLAN_ALIGNMENT;
}

/* ---- writing */

static void put_values(struct wpk_json_writer *w, const struct wpk_model_plan_shape *shape)
{
    wpk_json_begin_array(w, "values");
    for (int i = 0; i < shape->value_count; i++) {
        const struct wpk_model_plan_value *value = &shape->values[i];
        struct wpk_named_tensor tensor = {.type = value->type};
        snprintf(tensor.name, sizeof(tensor.name), "v%d", i);
        wpk_json_begin_object(w, NULL);
        wpk_json_put_int(w, "place", value->place);
        wpk_json_put_int(w, "offset", value->offset);
        wpk_json_put_int(w, "part", value->is_part);
        wpk_json_put_int(w, "stride", value->stride);
        /* A list of one: a tensor's form has one writer. */
        (void)!wpk_named_tensors_put(w, "tensor", &tensor, 1);
        wpk_json_end(w);
    }
    wpk_json_end(w);
}

static void put_ends(struct wpk_json_writer *w, const char *key,
                     const struct wpk_model_plan_end *ends, int count)
{
    wpk_json_begin_array(w, key);
    for (int i = 0; i < count; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "name", ends[i].name);
        wpk_json_put_int(w, "value", ends[i].value);
        wpk_json_put_real(w, "low", ends[i].domain.low);
        wpk_json_put_real(w, "high", ends[i].domain.high);
        wpk_json_end(w);
    }
    wpk_json_end(w);
}

static void put_host(struct wpk_json_writer *w, const struct wpk_model_plan_host *host)
{
    wpk_json_begin_object(w, "host");
    wpk_json_put_int(w, "op", host->op);
    wpk_json_put_int(w, "before", host->before);
    wpk_json_put_int(w, "extent", host->extent);
    wpk_json_put_int(w, "after", host->after);
    wpk_json_put_int(w, "count", host->count);
    wpk_json_put_int(w, "smallest", host->is_smallest);
    wpk_json_put_int(w, "axis", host->axis);
    wpk_json_put_int(w, "reduction", host->reduction);
    wpk_json_end(w);
}

static void put_steps(struct wpk_json_writer *w, const struct wpk_model_plan_shape *shape)
{
    wpk_json_begin_array(w, "steps");
    for (int i = 0; i < shape->step_count; i++) {
        const struct wpk_model_plan_step *step = &shape->steps[i];
        wpk_json_begin_object(w, NULL);
        wpk_json_put_int(w, "kernel", step->kernel);
        if (step->kernel < 0) {
            put_host(w, &step->host);
        }
        wpk_json_put_text(w, "node", step->node);
        wpk_json_begin_array(w, "arguments");
        for (int a = 0; a < step->argument_count; a++) {
            wpk_json_begin_object(w, NULL);
            wpk_json_put_text(w, "name", step->arguments[a].name);
            wpk_json_put_int(w, "value", step->arguments[a].value);
            wpk_json_end(w);
        }
        wpk_json_end(w);
        wpk_json_end(w);
    }
    wpk_json_end(w);
}

static void put_loops(struct wpk_json_writer *w, const struct wpk_model_plan_shape *shape)
{
    wpk_json_begin_array(w, "loops");
    for (int i = 0; i < shape->loop_count; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_int(w, "first", shape->loops[i].first);
        wpk_json_put_int(w, "count", shape->loops[i].count);
        wpk_json_put_int(w, "times", shape->loops[i].times);
        wpk_json_end(w);
    }
    wpk_json_end(w);
}

static void put_notes(struct wpk_json_writer *w, const struct wpk_model_plan_shape *shape)
{
    wpk_json_begin_array(w, "notes");
    for (int i = 0; i < shape->note_count; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "node", shape->notes[i].node);
        wpk_json_put_text(w, "why", shape->notes[i].why);
        wpk_json_end(w);
    }
    wpk_json_end(w);
}

static void put_shape(struct wpk_json_writer *w, const struct wpk_model_plan_shape *shape)
{
    wpk_json_begin_object(w, NULL);
    wpk_json_put_int(w, "arena_size", shape->arena_size);
    put_values(w, shape);
    put_ends(w, "inputs", shape->inputs, shape->input_count);
    put_ends(w, "outputs", shape->outputs, shape->output_count);
    put_steps(w, shape);
    put_loops(w, shape);
    put_notes(w, shape);
    wpk_json_end(w);
}

static wpk_err encode_manifest(const struct wpk_model_plan *plan, struct wpk_buf *out)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    char checksum[WPK_CHECKSUM_HEX_SIZE];

    wpk_checksum_hex(plan->data, plan->data_size, checksum);
    wpk_json_put_text(w, "device", plan->device);
    wpk_json_put_int(w, "threads", plan->threads);
    wpk_json_put_text(w, "data_checksum", checksum);
    wpk_json_begin_array(w, "kernels");
    for (int i = 0; i < plan->kernel_count; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_int(w, "offset", plan->kernels[i].offset);
        wpk_json_put_int(w, "size", plan->kernels[i].size);
        wpk_json_put_text(w, "name", plan->kernels[i].name);
        wpk_json_put_real(w, "flops", plan->kernels[i].flops);
        wpk_json_put_real(w, "bytes", plan->kernels[i].bytes);
        wpk_json_put_int(w, "time_ns", plan->kernels[i].time_ns);
        wpk_json_put_text(w, "vendor", plan->kernels[i].vendor);
        wpk_json_put_int(w, "vendor_ns", plan->kernels[i].vendor_ns);
        wpk_json_end(w);
    }
    wpk_json_end(w);
    wpk_json_begin_array(w, "shapes");
    for (int i = 0; i < plan->shape_count; i++) {
        put_shape(w, &plan->shapes[i]);
    }
    wpk_json_end(w);
    wpk_err err = wpk_json_print(w, false, out);
    wpk_json_writer_free(w);
    return err;
}

wpk_err wpk_model_plan_encode(const struct wpk_model_plan *plan, struct wpk_buf *out)
{
    static const char zeros[WPK_MODEL_PLAN_SLACK];
    struct wpk_buf manifest = {.size_max = WPK_MODEL_PLAN_MANIFEST_MAX};
    struct header header = {.magic = MAGIC, .version = WPK_MODEL_PLAN_VERSION};

    wpk_err err = encode_manifest(plan, &manifest);
    if (err == WPK_OK) {
        header.manifest_size = manifest.size;
        header.data_size = plan->data_size;
        wpk_crypto_sha256(manifest.data, manifest.size, header.sha256);
        wpk_buf_append(out, &header, sizeof(header));
        wpk_buf_append(out, manifest.data, manifest.size);
        wpk_buf_append(out, zeros, align(manifest.size) - manifest.size);
        wpk_buf_append(out, plan->data, plan->data_size);
        wpk_buf_append(out, zeros, WPK_MODEL_PLAN_SLACK);
        err = wpk_buf_status(out);
    }
    wpk_buf_fini(&manifest);
    return err;
}

/* ---- reading: counts first, so that every index can be checked where it stands */

static int count_items(struct wpk_json_reader *r, const char *key, int max)
{
    size_t count = wpk_json_count(r, key);

    if (count > (size_t)max) {
        wpk_json_fail(r, key, WPK_ERANGE, "more than %d", max);
        return 0;
    }
    return (int)count;
}

static const char *get_text(struct wpk_json_reader *r, struct wpk_model_plan *plan, const char *key)
{
    const char *text = wpk_arena_copy_text(&plan->arena, wpk_json_get_text(r, key, NODE_MAX));

    if (text == NULL) {
        wpk_json_fail(r, key, WPK_ENOMEM, "out of memory");
    }
    return text;
}

/* Bytes of the value's place. */
static uint64_t room_of(const struct wpk_model_plan *plan, const struct wpk_model_plan_shape *shape,
                        const struct wpk_model_plan_value *value)
{
    return value->place == WPK_MODEL_PLAN_DATA ? plan->data_size : (uint64_t)shape->arena_size;
}

static void read_value(struct wpk_json_reader *r, const struct wpk_model_plan *plan,
                       const struct wpk_model_plan_shape *shape, struct wpk_model_plan_value *out)
{
    struct wpk_named_tensor tensor = {.name = ""};

    out->place =
        (enum wpk_model_plan_place)wpk_json_get_int(r, "place", 0, WPK_MODEL_PLAN_PLACE_COUNT - 1);
    out->offset = wpk_json_get_int(r, "offset", 0, WPK_MODEL_PLAN_ARENA_MAX);
    out->is_part = wpk_json_get_int(r, "part", 0, 1) != 0;
    out->stride =
        wpk_json_get_int(r, "stride", -WPK_MODEL_PLAN_ARENA_MAX, WPK_MODEL_PLAN_ARENA_MAX);
    wpk_json_enter_array(r, "tensor");
    if (wpk_json_next(r)) {
        wpk_named_tensor_get(r, &tensor);
    }
    wpk_json_leave(r);
    out->type = tensor.type;
    if (wpk_json_status(r) != WPK_OK) {
        return;
    }
    if (!wpk_layout_is_ordered(&out->type.layout) ||
        (out->place != WPK_MODEL_PLAN_ARENA && !wpk_layout_is_row_major(&out->type.layout))) {
        wpk_json_fail(r, "tensor", WPK_EINVAL, "a layout that values do not have here");
        return;
    }
    uint64_t size = wpk_tensor_type_bytes(&out->type);
    uint64_t room = room_of(plan, shape, out);
    bool is_memory = out->place == WPK_MODEL_PLAN_ARENA || out->place == WPK_MODEL_PLAN_DATA;
    int ends = out->place == WPK_MODEL_PLAN_INPUT ? shape->input_count : shape->output_count;
    if (is_memory ? out->offset % (int64_t)wpk_dtype_size(out->type.dtype) != 0 || size > room ||
                        (uint64_t)out->offset > room - size
                  : out->offset >= ends) {
        wpk_json_fail(r, "offset", WPK_ERANGE, "the value lies outside of its place");
    }
    if (out->stride != 0 &&
        (!is_memory || out->stride % (int64_t)wpk_dtype_size(out->type.dtype) != 0)) {
        wpk_json_fail(r, "stride", WPK_EINVAL, "a value that no loop can move");
    }
}

/* The end has the name that it has in the first shape. */
static void read_end(struct wpk_json_reader *r, struct wpk_model_plan *plan,
                     struct wpk_model_plan_shape *shape, bool is_input, int index)
{
    const struct wpk_model_plan_shape *first = &plan->shapes[0];
    const struct wpk_model_plan_end *same =
        is_input ? &first->inputs[index] : &first->outputs[index];
    struct wpk_model_plan_end *out = is_input ? &shape->inputs[index] : &shape->outputs[index];

    out->name = get_text(r, plan, "name");
    out->value = (int)wpk_json_get_int(r, "value", 0, shape->value_count - 1);
    out->domain.low = wpk_json_get_real(r, "low", -WPK_DOMAIN_MOST, WPK_DOMAIN_MOST);
    out->domain.high = wpk_json_get_real(r, "high", out->domain.low, WPK_DOMAIN_MOST);
    if (wpk_json_status(r) != WPK_OK) {
        return;
    }
    const struct wpk_model_plan_value *value = &shape->values[out->value];
    if (strcmp(out->name, same->name) != 0) {
        wpk_json_fail(r, "name", WPK_EINVAL, "another name than in the first shape");
    }
    if (value->stride != 0) {
        wpk_json_fail(r, "value", WPK_EINVAL, "a value of a loop");
    }
    if (is_input && (value->place != WPK_MODEL_PLAN_INPUT || value->offset != index)) {
        wpk_json_fail(r, "value", WPK_EINVAL, "the value lies elsewhere");
    }
}

static void read_kernel(struct wpk_json_reader *r, const struct wpk_model_plan *plan,
                        struct wpk_model_plan_kernel *out)
{
    int64_t room = (int64_t)plan->data_size;

    out->offset = wpk_json_get_int(r, "offset", 0, room);
    out->size = wpk_json_get_int(r, "size", 1, room);
    wpk_json_get_copy(r, "name", out->name, sizeof(out->name));
    out->flops = wpk_json_get_real(r, "flops", 0, WORK_MAX);
    out->bytes = wpk_json_get_real(r, "bytes", 0, WORK_MAX);
    out->time_ns = wpk_json_get_int(r, "time_ns", 0, INT64_MAX);
    wpk_json_get_copy(r, "vendor", out->vendor, sizeof(out->vendor));
    out->vendor_ns = wpk_json_get_int(r, "vendor_ns", 0, INT64_MAX);
    if (wpk_json_status(r) == WPK_OK && out->offset > room - out->size) {
        wpk_json_fail(r, "size", WPK_ERANGE, "the kernel lies outside of the data");
    }
}

static void read_host(struct wpk_json_reader *r, struct wpk_model_plan_host *out)
{
    wpk_json_enter(r, "host");
    out->op =
        (enum wpk_model_plan_host_op)wpk_json_get_int(r, "op", 0, WPK_MODEL_PLAN_HOST_COUNT - 1);
    out->before = wpk_json_get_int(r, "before", 1, WPK_MODEL_PLAN_ARENA_MAX);
    out->extent = wpk_json_get_int(r, "extent", 1, WPK_MODEL_PLAN_ARENA_MAX);
    out->after = wpk_json_get_int(r, "after", 1, WPK_MODEL_PLAN_ARENA_MAX);
    out->count = wpk_json_get_int(r, "count", 1, WPK_MODEL_PLAN_ARENA_MAX);
    out->is_smallest = wpk_json_get_int(r, "smallest", 0, 1) != 0;
    out->axis = (int)wpk_json_get_int(r, "axis", -1, WPK_RANK_MAX - 1);
    out->reduction =
        (enum wpk_scatter_reduction)wpk_json_get_int(r, "reduction", 0, WPK_SCATTER_COUNT - 1);
    wpk_json_leave(r);
}

static void read_step(struct wpk_json_reader *r, struct wpk_model_plan *plan,
                      const struct wpk_model_plan_shape *shape, struct wpk_model_plan_step *out)
{
    out->kernel = (int)wpk_json_get_int(r, "kernel", -1, plan->kernel_count - 1);
    if (out->kernel < 0) {
        read_host(r, &out->host);
    }
    out->node = get_text(r, plan, "node");
    int count = count_items(r, "arguments", WPK_MODEL_PLAN_ARGUMENTS_MAX);
    out->arguments = WPK_ARENA_NEW(&plan->arena, struct wpk_model_plan_argument, (size_t)count);
    if (out->arguments == NULL) {
        wpk_json_fail(r, "arguments", WPK_ENOMEM, "out of memory");
        return;
    }
    wpk_json_enter_array(r, "arguments");
    while (wpk_json_next(r) && out->argument_count < count) {
        struct wpk_model_plan_argument *argument = &out->arguments[out->argument_count++];
        wpk_json_get_copy(r, "name", argument->name, sizeof(argument->name));
        argument->value = (int)wpk_json_get_int(r, "value", 0, shape->value_count - 1);
    }
    wpk_json_leave(r);
}

static void read_loop(struct wpk_json_reader *r, const struct wpk_model_plan_shape *shape,
                      int index)
{
    struct wpk_model_plan_loop *loop = &shape->loops[index];
    const struct wpk_model_plan_loop *before = index > 0 ? loop - 1 : NULL;
    int least = before != NULL ? before->first + before->count : 0;

    loop->first = (int)wpk_json_get_int(r, "first", 0, WPK_MODEL_PLAN_STEPS_MAX);
    loop->count = (int)wpk_json_get_int(r, "count", 1, WPK_MODEL_PLAN_STEPS_MAX);
    loop->times = wpk_json_get_int(r, "times", 1, WPK_MODEL_PLAN_ARENA_MAX);
    if (wpk_json_status(r) == WPK_OK &&
        (loop->first < least || loop->count > shape->step_count - loop->first)) {
        wpk_json_fail(r, "first", WPK_ERANGE, "steps of another loop, or none");
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

static wpk_err allocate(struct wpk_json_reader *r, struct wpk_arena *arena,
                        struct wpk_model_plan_shape *shape)
{
    shape->value_count = count_items(r, "values", WPK_MODEL_PLAN_VALUES_MAX);
    shape->input_count = count_items(r, "inputs", WPK_MODEL_PLAN_ENDS_MAX);
    shape->output_count = count_items(r, "outputs", WPK_MODEL_PLAN_ENDS_MAX);
    shape->step_count = count_items(r, "steps", WPK_MODEL_PLAN_STEPS_MAX);
    shape->loop_count = count_items(r, "loops", WPK_MODEL_PLAN_STEPS_MAX);
    shape->note_count = count_items(r, "notes", WPK_MODEL_PLAN_STEPS_MAX);
    shape->values = WPK_ARENA_NEW(arena, struct wpk_model_plan_value, (size_t)shape->value_count);
    shape->inputs = WPK_ARENA_NEW(arena, struct wpk_model_plan_end, (size_t)shape->input_count);
    shape->outputs = WPK_ARENA_NEW(arena, struct wpk_model_plan_end, (size_t)shape->output_count);
    shape->steps = WPK_ARENA_NEW(arena, struct wpk_model_plan_step, (size_t)shape->step_count);
    shape->loops = WPK_ARENA_NEW(arena, struct wpk_model_plan_loop, (size_t)shape->loop_count);
    shape->notes = WPK_ARENA_NEW(arena, struct wpk_model_plan_note, (size_t)shape->note_count);
    return shape->values != NULL && shape->inputs != NULL && shape->outputs != NULL &&
                   shape->steps != NULL && shape->loops != NULL && shape->notes != NULL
               ? WPK_OK
               : WPK_ENOMEM;
}

static void read_lists(struct wpk_json_reader *r, struct wpk_model_plan *plan,
                       struct wpk_model_plan_shape *shape)
{
    int i = 0;

    wpk_json_enter_array(r, "values");
    while (wpk_json_next(r)) {
        read_value(r, plan, shape, &shape->values[i++]);
    }
    wpk_json_leave(r);
    i = 0;
    wpk_json_enter_array(r, "inputs");
    while (wpk_json_next(r)) {
        read_end(r, plan, shape, true, i++);
    }
    wpk_json_leave(r);
    i = 0;
    wpk_json_enter_array(r, "outputs");
    while (wpk_json_next(r)) {
        read_end(r, plan, shape, false, i++);
    }
    wpk_json_leave(r);
    i = 0;
    wpk_json_enter_array(r, "steps");
    while (wpk_json_next(r)) {
        read_step(r, plan, shape, &shape->steps[i++]);
    }
    wpk_json_leave(r);
    i = 0;
    wpk_json_enter_array(r, "loops");
    while (wpk_json_next(r)) {
        read_loop(r, shape, i++);
    }
    wpk_json_leave(r);
    if (wpk_json_status(r) == WPK_OK) {
        check_strides(r, plan, shape);
    }
    i = 0;
    wpk_json_enter_array(r, "notes");
    while (wpk_json_next(r)) {
        shape->notes[i].node = get_text(r, plan, "node");
        shape->notes[i++].why = get_text(r, plan, "why");
    }
    wpk_json_leave(r);
}

static void read_shape(struct wpk_json_reader *r, struct wpk_model_plan *plan,
                       struct wpk_model_plan_shape *shape)
{
    const struct wpk_model_plan_shape *first = &plan->shapes[0];

    shape->arena_size = wpk_json_get_int(r, "arena_size", 0, WPK_MODEL_PLAN_ARENA_MAX);
    if (wpk_json_status(r) != WPK_OK) {
        return;
    }
    if (allocate(r, &plan->arena, shape) != WPK_OK) {
        wpk_json_fail(r, "values", WPK_ENOMEM, "out of memory");
    } else if (shape->input_count != first->input_count ||
               shape->output_count != first->output_count) {
        wpk_json_fail(r, "inputs", WPK_EINVAL, "other inputs or outputs than in the first shape");
    } else {
        read_lists(r, plan, shape);
    }
}

static wpk_err read_parts(struct wpk_json_reader *r, struct wpk_model_plan *plan)
{
    int i = 0;

    plan->kernel_count = count_items(r, "kernels", WPK_MODEL_PLAN_STEPS_MAX);
    plan->shape_count = count_items(r, "shapes", WPK_MODEL_PLAN_SHAPES_MAX);
    plan->kernels =
        WPK_ARENA_NEW(&plan->arena, struct wpk_model_plan_kernel, (size_t)plan->kernel_count);
    plan->shapes =
        WPK_ARENA_NEW(&plan->arena, struct wpk_model_plan_shape, (size_t)plan->shape_count);
    if (plan->kernels == NULL || plan->shapes == NULL) {
        return WPK_ENOMEM;
    }
    if (plan->shape_count == 0) {
        wpk_json_fail(r, "shapes", WPK_EINVAL, "none");
    }
    wpk_json_enter_array(r, "kernels");
    while (wpk_json_next(r)) {
        read_kernel(r, plan, &plan->kernels[i++]);
    }
    wpk_json_leave(r);
    i = 0;
    wpk_json_enter_array(r, "shapes");
    while (wpk_json_next(r)) {
        read_shape(r, plan, &plan->shapes[i++]);
    }
    wpk_json_leave(r);
    return wpk_json_status(r);
}

static wpk_err read_manifest(const char *text, size_t size, struct wpk_model_plan *plan,
                             struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;
    char expected[WPK_CHECKSUM_HEX_SIZE];
    char checksum[WPK_CHECKSUM_HEX_SIZE];

    wpk_err err = wpk_json_open(text, size, WPK_MODEL_PLAN_MANIFEST_MAX, &r, diag);
    if (err != WPK_OK) {
        return err;
    }
    wpk_json_get_copy(r, "device", plan->device, sizeof(plan->device));
    plan->threads = (int)wpk_json_get_int(r, "threads", 1, 1024);
    wpk_json_get_copy(r, "data_checksum", expected, sizeof(expected));
    err = wpk_json_status(r);
    if (err == WPK_OK) {
        wpk_checksum_hex(plan->data, plan->data_size, checksum);
        if (strcmp(checksum, expected) != 0) {
            wpk_diag_set(diag, "its kernels or constants were changed");
            err = WPK_ECORRUPT;
        }
    }
    if (err == WPK_OK) {
        err = read_parts(r, plan);
    }
    wpk_json_close(r);
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
        wpk_diag_set(diag, "not a model's plan; wpkctl tune MODEL.onnx -o FILE.wpk writes one");
        return WPK_ECORRUPT;
    }
    memcpy(&header, bytes, sizeof(header));
    if (header.version != WPK_MODEL_PLAN_VERSION) {
        wpk_diag_set(diag, "a plan of version %u; this is version %d: tune the model again",
                     header.version, WPK_MODEL_PLAN_VERSION);
        return WPK_EMISMATCH;
    }
    size_t room = size - sizeof(header);
    if (header.manifest_size > WPK_MODEL_PLAN_MANIFEST_MAX ||
        align(header.manifest_size) + WPK_MODEL_PLAN_SLACK > room ||
        header.data_size != room - align(header.manifest_size) - WPK_MODEL_PLAN_SLACK) {
        wpk_diag_set(diag, "the plan is cut short, or its header was changed");
        return WPK_ECORRUPT;
    }
    for (int i = 0; i < WPK_MODEL_PLAN_SLACK; i++) {
        if (text[room - WPK_MODEL_PLAN_SLACK + (size_t)i] != 0) {
            wpk_diag_set(diag, "the plan's end was changed");
            return WPK_ECORRUPT;
        }
    }
    wpk_crypto_sha256(text, header.manifest_size, sha256);
    if (memcmp(sha256, header.sha256, sizeof(sha256)) != 0) {
        wpk_diag_set(diag, "the plan's manifest was changed");
        return WPK_ECORRUPT;
    }
    out->data = text + align(header.manifest_size);
    out->data_size = header.data_size;
    wpk_err err = read_manifest(text, header.manifest_size, out, diag);
    return err == WPK_OK || err == WPK_ENOMEM ? err : WPK_ECORRUPT;
}
