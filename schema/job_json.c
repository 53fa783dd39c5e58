/* SPDX-License-Identifier: Apache-2.0 */
/* A job as JSON. All errors but those inside operators are found here, with their position: a job
 * that decodes has all its fields in range. */
#include "common/json.h"
#include "schema/device.h"
#include "schema/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char *const layouts_names[] = {WPK_LAYOUTS_LIST(WPK_LIST_TEXT)};
static const char *const conditions_names[] = {WPK_CONDITIONS_LIST(WPK_LIST_TEXT)};

static void *allocate(struct wpk_json_reader *reader, size_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);

    if (memory == NULL) {
        wpk_json_fail(reader, NULL, WPK_ENOMEM, "%s", wpk_err_text(WPK_ENOMEM));
    }
    return memory;
}

/* A name that is typed in commands and stands in file names. */
static void get_word(struct wpk_json_reader *reader, const char *key, char *out, size_t out_size)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

    wpk_json_get_copy(reader, key, out, out_size);
    if (wpk_json_status(reader) != WPK_OK) {
        return;
    }
    if (out[0] == '\0' || out[0] == '.' || out[0] == '-' || out[strspn(out, allowed)] != '\0') {
        wpk_json_fail(reader, key, WPK_EINVAL,
                      "must start with a letter, a digit or _ and hold only these, . and -");
    }
}

static int find_tensor(const struct wpk_job_op *op, const char *name)
{
    for (int i = 0; i < op->tensor_count; i++) {
        if (strcmp(op->tensors[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static void decode_tensors(struct wpk_json_reader *reader, struct wpk_job_op *op)
{
    size_t count = wpk_json_count(reader, "tensors");

    if (count > WPK_JOB_TENSORS_MAX) {
        wpk_json_fail(reader, "tensors", WPK_ERANGE, "declares more than %d tensors",
                      WPK_JOB_TENSORS_MAX);
        return;
    }
    op->tensors = allocate(reader, count, sizeof(*op->tensors));
    wpk_json_enter(reader, "tensors");
    while (wpk_json_next(reader)) {
        struct wpk_job_tensor *tensor = &op->tensors[op->tensor_count];
        const char *name = wpk_json_name(reader);
        if (name[0] == '\0' || strlen(name) >= sizeof(tensor->name)) {
            wpk_json_fail(reader, NULL, WPK_ERANGE, "a tensor's name has 1 to %zu bytes",
                          sizeof(tensor->name) - 1);
            break;
        }
        memcpy(tensor->name, name, strlen(name) + 1);
        wpk_json_get_copy(reader, NULL, tensor->type, sizeof(tensor->type));
        op->tensor_count++;
    }
    wpk_json_leave(reader);
}

static void decode_constants(struct wpk_json_reader *reader, struct wpk_job_op *op)
{
    wpk_json_enter_array(reader, "constants");
    while (wpk_json_next(reader)) {
        const char *name = wpk_json_get_text(reader, NULL, WPK_NAME_MAX - 1);
        int tensor = find_tensor(op, name);
        if (tensor < 0) {
            wpk_json_fail(reader, NULL, WPK_EINVAL, "'%s' is not among the tensors", name);
        } else if (op->tensors[tensor].constant) {
            wpk_json_fail(reader, NULL, WPK_EINVAL, "'%s' is named twice", name);
        } else {
            op->tensors[tensor].constant = true;
        }
    }
    wpk_json_leave(reader);
}

/* The shorthand as it stands in the file, so that positions within it hold. */
static char *copy_raw(struct wpk_json_reader *reader, const char *key)
{
    struct wpk_buf raw = {.size_max = WPK_JOB_SIZE_MAX};
    char *text = NULL;

    wpk_json_get_raw(reader, key, &raw);
    return wpk_buf_take(&raw, &text, NULL) == WPK_OK ? text : NULL;
}

static void decode_body(struct wpk_json_reader *reader, struct wpk_job_op *op)
{
    enum wpk_json_kind kind = wpk_json_kind_of(reader, "op");
    char *body = NULL;

    if (kind == WPK_JSON_STRING) {
        body = strdup(wpk_json_get_text(reader, "op", WPK_JOB_OP_TEXT_MAX));
        op->notation = body;
        decode_tensors(reader, op);
        if (wpk_json_has(reader, "constants")) {
            decode_constants(reader, op);
        }
    } else if (kind == WPK_JSON_OBJECT) {
        body = copy_raw(reader, "op");
        op->shorthand = body;
        for (int i = 0; i < 2; i++) {
            const char *key = i == 0 ? "tensors" : "constants";
            if (wpk_json_has(reader, key)) {
                wpk_json_fail(reader, key, WPK_EINVAL,
                              "belongs to notation; a shorthand declares its own");
            }
        }
    } else {
        wpk_json_fail(reader, "op", WPK_EINVAL, "%s",
                      kind == WPK_JSON_ABSENT
                          ? "is missing; notation (a string) or a shorthand (an object) "
                            "is expected"
                          : "must be notation (a string) or a shorthand (an object)");
        return;
    }
    if (body == NULL) {
        wpk_json_fail(reader, "op", WPK_ENOMEM, "%s", wpk_err_text(WPK_ENOMEM));
    }
}

void wpk_job_op_read_key(struct wpk_json_reader *reader, struct wpk_job_op *op)
{
    if (wpk_json_has(reader, "layouts")) {
        op->layouts = (enum wpk_layouts)wpk_json_get_choice(reader, "layouts", layouts_names,
                                                            COUNT_OF(layouts_names));
    }
    wpk_accuracy_get(reader, "accuracy", &op->accuracy);
    if (wpk_json_has(reader, "conditions")) {
        op->conditions = (enum wpk_conditions)wpk_json_get_choice(
            reader, "conditions", conditions_names, COUNT_OF(conditions_names));
    }
}

void wpk_job_op_read(struct wpk_json_reader *reader, struct wpk_job_op *op)
{
    if (wpk_json_has(reader, "name")) {
        get_word(reader, "name", op->name, sizeof(op->name));
    }
    decode_body(reader, op);
    wpk_job_op_read_key(reader, op);
}

static void decode_op(struct wpk_json_reader *reader, struct wpk_job *job)
{
    struct wpk_job_op *op = &job->ops[job->op_count];

    WPK_JSON_ALLOW(reader, "name", "op", "tensors", "constants", "layouts", "accuracy",
                   "conditions", "count");
    get_word(reader, "name", op->name, sizeof(op->name));
    for (int i = 0; i < job->op_count; i++) {
        if (strcmp(job->ops[i].name, op->name) == 0) {
            wpk_json_fail(reader, "name", WPK_EINVAL, "'%s' is the name of ops[%d] already",
                          op->name, i);
        }
    }
    wpk_job_op_read(reader, op);
    op->count =
        wpk_json_has(reader, "count") ? wpk_json_get_int(reader, "count", 1, WPK_JOB_COUNT_MAX) : 1;
    job->op_count++;
}

static void decode_ops(struct wpk_json_reader *reader, struct wpk_job *job)
{
    size_t count = wpk_json_count(reader, "ops");

    if (wpk_json_kind_of(reader, "ops") == WPK_JSON_ARRAY &&
        (count < 1 || count > WPK_JOB_OPS_MAX)) {
        wpk_json_fail(reader, "ops", WPK_ERANGE, "holds %zu operators; 1 to %d are expected", count,
                      WPK_JOB_OPS_MAX);
        return;
    }
    job->ops = allocate(reader, count, sizeof(*job->ops));
    wpk_json_enter_array(reader, "ops");
    while (wpk_json_next(reader)) {
        decode_op(reader, job);
    }
    wpk_json_leave(reader);
}

static bool is_label_name(const char *name)
{
    size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-");

    return size > 0 && name[size] == '\0' && size < WPK_JOB_NAME_MAX;
}

static void decode_labels(struct wpk_json_reader *reader, struct wpk_job *job)
{
    size_t count = wpk_json_count(reader, "labels");

    if (count > WPK_JOB_LABELS_MAX) {
        wpk_json_fail(reader, "labels", WPK_ERANGE, "more than %d labels", WPK_JOB_LABELS_MAX);
        return;
    }
    job->labels = allocate(reader, count, sizeof(*job->labels));
    wpk_json_enter(reader, "labels");
    while (wpk_json_next(reader)) {
        struct wpk_job_label *label = &job->labels[job->label_count];
        const char *name = wpk_json_name(reader);
        if (!is_label_name(name)) {
            wpk_json_fail(reader, NULL, WPK_EINVAL,
                          "a label's name has 1 to %d bytes of a-z, 0-9, _, . and -",
                          WPK_JOB_NAME_MAX - 1);
            break;
        }
        memcpy(label->name, name, strlen(name) + 1);
        wpk_json_get_label(reader, NULL, label->value, sizeof(label->value));
        job->label_count++;
    }
    wpk_json_leave(reader);
}

static void decode_device(struct wpk_json_reader *reader, struct wpk_job *job)
{
    struct wpk_device device;

    wpk_json_get_label(reader, "device", job->device, sizeof(job->device));
    if (wpk_json_status(reader) == WPK_OK && (wpk_device_of_class(job->device, &device) != WPK_OK ||
                                              strcmp(device.kind, job->kind) != 0)) {
        wpk_json_fail(reader, "device", WPK_EINVAL,
                      "not a device class of that kind, such as \"cpu/AMD EPYC 9B45/avx512\"");
    }
}

static void decode_target(struct wpk_json_reader *reader, struct wpk_job *job)
{
    static const char *const kinds[] = {"cpu", "cuda"};

    wpk_json_enter(reader, "target");
    WPK_JSON_ALLOW(reader, "kind", "device", "threads", "labels");
    if (wpk_json_has(reader, "kind")) {
        size_t kind = wpk_json_get_choice(reader, "kind", kinds, COUNT_OF(kinds));
        snprintf(job->kind, sizeof(job->kind), "%s", kinds[kind]);
    }
    if (wpk_json_has(reader, "device")) {
        decode_device(reader, job);
    }
    if (wpk_json_has(reader, "threads")) {
        job->threads = (int)wpk_json_get_int(reader, "threads", 1, WPK_JOB_THREADS_MAX);
    }
    if (wpk_json_has(reader, "labels")) {
        decode_labels(reader, job);
    }
    if (wpk_json_status(reader) == WPK_OK && strcmp(job->kind, "cuda") == 0 && job->threads > 1) {
        wpk_json_fail(reader, "threads", WPK_EINVAL,
                      "a kernel for a GPU has one thread on the CPU");
    }
    wpk_json_leave(reader);
}

static void decode_pins(struct wpk_json_reader *reader, struct wpk_job *job)
{
    size_t count = wpk_json_count(reader, "pin");

    if (count > WPK_JOB_PINS_MAX) {
        wpk_json_fail(reader, "pin", WPK_ERANGE, "pins more than %d genes", WPK_JOB_PINS_MAX);
        return;
    }
    job->pins = allocate(reader, count, sizeof(*job->pins));
    wpk_json_enter(reader, "pin");
    while (wpk_json_next(reader)) {
        struct wpk_job_pin *pin = &job->pins[job->pin_count];
        const char *gene = wpk_json_name(reader);
        if (gene[0] == '\0' || strlen(gene) >= sizeof(pin->gene)) {
            wpk_json_fail(reader, NULL, WPK_ERANGE, "a gene's name has 1 to %zu bytes",
                          sizeof(pin->gene) - 1);
            break;
        }
        memcpy(pin->gene, gene, strlen(gene) + 1);
        wpk_json_get_label(reader, NULL, pin->value, sizeof(pin->value));
        job->pin_count++;
    }
    wpk_json_leave(reader);
}

static void decode_options(struct wpk_json_reader *reader, struct wpk_job *job)
{
    wpk_json_enter(reader, "options");
    while (wpk_json_next(reader)) {
        char value[32];
        const char *name = wpk_json_name(reader);
        snprintf(value, sizeof(value), "%.17g", wpk_json_get_real(reader, NULL, -1e300, 1e300));
        if (wpk_job_set_option(job, name, value) != WPK_OK) {
            wpk_json_fail(reader, NULL, WPK_ERANGE, "the options have more than %d bytes",
                          WPK_JOB_OPTIONS_MAX - 1);
            break;
        }
    }
    wpk_json_leave(reader);
}

static void decode_search(struct wpk_json_reader *reader, struct wpk_job *job)
{
    wpk_json_enter(reader, "search");
    WPK_JSON_ALLOW(reader, "strategy", "options", "prior", "prior_text", "seed", "pin");
    if (wpk_json_has(reader, "strategy")) {
        get_word(reader, "strategy", job->strategy, sizeof(job->strategy));
    }
    if (wpk_json_has(reader, "options")) {
        decode_options(reader, job);
    }
    if (wpk_json_has(reader, "prior")) {
        wpk_json_get_label(reader, "prior", job->prior, sizeof(job->prior));
    }
    if (wpk_json_has(reader, "prior_text")) {
        job->prior_text = strdup(wpk_json_get_text(reader, "prior_text", WPK_JOB_PRIOR_MAX));
        if (job->prior_text == NULL) {
            wpk_json_fail(reader, NULL, WPK_ENOMEM, NULL);
        }
    }
    if (wpk_json_has(reader, "seed")) {
        job->seed = wpk_json_get_u64(reader, "seed");
    }
    if (wpk_json_has(reader, "pin")) {
        decode_pins(reader, job);
    }
    wpk_json_leave(reader);
}

/* "converged", or an object with one number. */
static void decode_until(struct wpk_json_reader *reader, struct wpk_job *job)
{
    struct wpk_diag diag = {0};
    char text[WPK_JOB_UNTIL_MAX] = "";
    if (wpk_json_kind_of(reader, "until") == WPK_JSON_STRING) {
        get_word(reader, "until", text, sizeof(text));
    } else {
        wpk_json_enter(reader, "until");
        WPK_JSON_ALLOW(reader, "speedup", "of_peak");
        const char *name = wpk_json_has(reader, "speedup") ? "speedup" : "of_peak";
        double number = wpk_json_get_real(reader, name, 0, 1e6);
        snprintf(text, sizeof(text), "%s=%.9g", name, number);
        wpk_json_leave(reader);
    }
    if (wpk_json_status(reader) == WPK_OK && wpk_job_set_until(job, text, &diag) != WPK_OK) {
        wpk_json_fail(reader, "until", WPK_EINVAL, "%s", diag.text);
    }
}

static void decode_budget(struct wpk_json_reader *reader, struct wpk_job *job)
{
    wpk_json_enter(reader, "budget");
    WPK_JSON_ALLOW(reader, "candidates", "total", "seconds", "until");
    if (wpk_json_has(reader, "total")) {
        job->total = wpk_json_get_int(reader, "total", 1, WPK_JOB_CANDIDATES_MAX);
        job->candidates = job->total;
    }
    if (wpk_json_has(reader, "candidates")) {
        job->candidates = wpk_json_get_int(reader, "candidates", 1, WPK_JOB_CANDIDATES_MAX);
    }
    if (wpk_json_has(reader, "seconds")) {
        job->seconds = wpk_json_get_int(reader, "seconds", 1, WPK_JOB_SECONDS_MAX);
    }
    if (wpk_json_has(reader, "until")) {
        decode_until(reader, job);
    }
    wpk_json_leave(reader);
}

static void decode_job(struct wpk_json_reader *reader, struct wpk_job *job)
{
    WPK_JSON_ALLOW(reader, "name", "ops", "target", "search", "budget", "priority");
    if (wpk_json_has(reader, "name")) {
        wpk_json_get_label(reader, "name", job->name, sizeof(job->name));
    }
    if (wpk_json_has(reader, "target")) {
        decode_target(reader, job);
    }
    if (wpk_json_has(reader, "search")) {
        decode_search(reader, job);
    }
    if (wpk_json_has(reader, "budget")) {
        decode_budget(reader, job);
    }
    if (wpk_json_has(reader, "priority")) {
        job->priority =
            (int)wpk_json_get_int(reader, "priority", -WPK_JOB_PRIORITY_MAX, WPK_JOB_PRIORITY_MAX);
    }
    decode_ops(reader, job);
}

wpk_err wpk_job_decode(const char *text, size_t size, struct wpk_job *out, struct wpk_diag *diag)
{
    struct wpk_job job;
    struct wpk_json_reader *reader;

    WPK_ASSERT(out != NULL);
    wpk_job_init(&job);
    wpk_err err = wpk_json_open(text, size, WPK_JOB_SIZE_MAX, &reader, diag);
    if (err != WPK_OK) {
        return err;
    }
    job.source = strndup(text, size); /* a checked text holds no NUL */
    job.source_size = size;
    if (job.source == NULL) {
        err = WPK_ENOMEM;
    } else {
        decode_job(reader, &job);
        err = wpk_json_status(reader);
    }
    wpk_json_close(reader);
    if (err != WPK_OK) {
        wpk_job_fini(&job);
        return err;
    }
    *out = job;
    return WPK_OK;
}

void wpk_job_op_put(const struct wpk_job_op *op, struct wpk_json_writer *writer)
{
    if (op->name[0] != '\0') {
        wpk_json_put_text(writer, "name", op->name);
    }
    if (op->shorthand != NULL) {
        wpk_json_put_raw(writer, "op", op->shorthand);
    } else {
        wpk_json_put_text(writer, "op", op->notation);
        wpk_json_begin_object(writer, "tensors");
        for (int i = 0; i < op->tensor_count; i++) {
            wpk_json_put_text(writer, op->tensors[i].name, op->tensors[i].type);
        }
        wpk_json_end(writer);
        wpk_json_begin_array(writer, "constants");
        for (int i = 0; i < op->tensor_count; i++) {
            if (op->tensors[i].constant) {
                wpk_json_put_text(writer, NULL, op->tensors[i].name);
            }
        }
        wpk_json_end(writer);
    }
    wpk_json_put_text(writer, "layouts", wpk_layouts_name(op->layouts));
    wpk_accuracy_put(writer, "accuracy", &op->accuracy);
    wpk_json_put_text(writer, "conditions", wpk_conditions_name(op->conditions));
}

static void encode_settings(const struct wpk_job *job, struct wpk_json_writer *writer)
{
    wpk_json_begin_object(writer, "target");
    wpk_json_put_text(writer, "kind", job->kind);
    if (job->device[0] != '\0') {
        wpk_json_put_text(writer, "device", job->device);
    }
    wpk_json_put_int(writer, "threads", job->threads);
    wpk_json_begin_object(writer, "labels");
    for (int i = 0; i < job->label_count; i++) {
        wpk_json_put_text(writer, job->labels[i].name, job->labels[i].value);
    }
    wpk_json_end(writer);
    wpk_json_end(writer);
    wpk_json_begin_object(writer, "search");
    char name[WPK_JOB_GENE_MAX], value[WPK_JOB_GENE_MAX];
    wpk_json_put_text(writer, "strategy", job->strategy);
    wpk_json_begin_object(writer, "options");
    for (int i = 0; wpk_job_option_at(job->options, i, name, value); i++) {
        wpk_json_put_real(writer, name, strtod(value, NULL));
    }
    wpk_json_end(writer);
    if (job->prior_text != NULL) {
        wpk_json_put_text(writer, "prior_text", job->prior_text);
    } else if (job->prior[0] != '\0') {
        wpk_json_put_text(writer, "prior", job->prior);
    }
    wpk_json_put_u64(writer, "seed", job->seed);
    wpk_json_begin_object(writer, "pin");
    for (int i = 0; i < job->pin_count; i++) {
        wpk_json_put_text(writer, job->pins[i].gene, job->pins[i].value);
    }
    wpk_json_end(writer);
    wpk_json_end(writer);
    wpk_json_begin_object(writer, "budget");
    wpk_json_put_int(writer, "candidates", job->candidates);
    if (job->total > 0) {
        wpk_json_put_int(writer, "total", job->total);
    }
    wpk_json_put_int(writer, "seconds", job->seconds);
    const char *number = strchr(job->until, '=');
    if (number != NULL) {
        snprintf(name, sizeof(name), "%.*s", (int)(number - job->until), job->until);
        wpk_json_begin_object(writer, "until");
        wpk_json_put_real(writer, name, strtod(number + 1, NULL));
        wpk_json_end(writer);
    } else if (job->until[0] != '\0') {
        wpk_json_put_text(writer, "until", job->until);
    }
    wpk_json_end(writer);
    wpk_json_put_int(writer, "priority", job->priority);
}

wpk_err wpk_job_encode(const struct wpk_job *job, struct wpk_buf *out)
{
    WPK_ASSERT(job != NULL);
    struct wpk_json_writer *writer = wpk_json_writer_new_object();
    wpk_json_put_text(writer, "name", job->name);
    wpk_json_begin_array(writer, "ops");
    for (int i = 0; i < job->op_count; i++) {
        wpk_json_begin_object(writer, NULL);
        wpk_job_op_put(&job->ops[i], writer);
        wpk_json_put_int(writer, "count", job->ops[i].count > 0 ? job->ops[i].count : 1);
        wpk_json_end(writer);
    }
    wpk_json_end(writer);
    encode_settings(job, writer);
    wpk_err err = wpk_json_print(writer, false, out);
    wpk_json_writer_free(writer);
    return err;
}
