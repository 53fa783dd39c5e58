/* SPDX-License-Identifier: Apache-2.0 */
/* A job as JSON. All errors but those inside operators are found here, with their position: a job
 * that decodes has all its fields in range. */
#include "schema/device.h"
#include "schema/fields.h"
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
        int tensor = WPK_FIND(struct wpk_job_tensor, name, op->tensors, op->tensor_count, name);
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

static void get_ops(struct wpk_json_reader *reader, const char *key, void *object)
{
    struct wpk_job *job = object;
    size_t count = wpk_json_count(reader, key);

    if (wpk_json_kind_of(reader, key) == WPK_JSON_ARRAY && (count < 1 || count > WPK_JOB_OPS_MAX)) {
        wpk_json_fail(reader, key, WPK_ERANGE, "holds %zu operators; 1 to %d are expected", count,
                      WPK_JOB_OPS_MAX);
        return;
    }
    job->ops = allocate(reader, count, sizeof(*job->ops));
    wpk_json_enter_array(reader, key);
    while (wpk_json_next(reader)) {
        decode_op(reader, job);
    }
    wpk_json_leave(reader);
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

static void put_ops(struct wpk_json_writer *writer, const char *key, const void *object)
{
    const struct wpk_job *job = object;
    wpk_json_begin_array(writer, key);
    for (int i = 0; i < job->op_count; i++) {
        wpk_json_begin_object(writer, NULL);
        wpk_job_op_put(&job->ops[i], writer);
        wpk_json_put_int(writer, "count", job->ops[i].count > 0 ? job->ops[i].count : 1);
        wpk_json_end(writer);
    }
    wpk_json_end(writer);
}

/* ---- tables */

static void put_word(struct wpk_json_writer *writer, const char *key, const void *member)
{
    wpk_json_put_text(writer, key, member);
}

static void get_strategy(struct wpk_json_reader *reader, const char *key, void *member)
{
    get_word(reader, key, member, sizeof(((struct wpk_job *)0)->strategy));
}

static void get_kind(struct wpk_json_reader *reader, const char *key, void *member)
{
    static const char *const kinds[] = {"cpu", "cuda"};
    const char *kind = kinds[wpk_json_get_choice(reader, key, kinds, COUNT_OF(kinds))];
    memcpy(member, kind, strlen(kind) + 1);
}

static void check_label(struct wpk_json_reader *reader, void *object)
{
    const struct wpk_worker_label *label = object;
    if (label->name[strspn(label->name, WPK_WORKER_LABEL_LETTERS)] != '\0') {
        wpk_json_fail(reader, NULL, WPK_EINVAL, "a label's name is of a-z, 0-9, _, . and -");
    }
}

const struct wpk_field wpk_worker_label_fields[] = {
    {WPK_FIELD(COPY, NULL, worker_label, name)},
    {WPK_FIELD(LABEL, NULL, worker_label, value)},
    {WPK_FIELD_CHECK(check_label)},
    {WPK_FIELD_END},
};

static void check_target(struct wpk_json_reader *reader, void *object)
{
    const struct wpk_job *job = object;
    struct wpk_device device;
    if (job->device[0] != '\0' && (wpk_device_of_class(job->device, &device) != WPK_OK ||
                                   strcmp(device.kind, job->kind) != 0)) {
        wpk_json_fail(reader, "device", WPK_EINVAL,
                      "not a device class of that kind, such as \"cpu/AMD EPYC 9B45/avx512\"");
    }
    if (strcmp(job->kind, "cuda") == 0 && job->threads > 1) {
        wpk_json_fail(reader, "threads", WPK_EINVAL,
                      "a kernel for a GPU has one thread on the CPU");
    }
}

static const struct wpk_field target_fields[] = {
    {WPK_FIELD_CUSTOM("kind", job, kind, put_word, get_kind, WPK_OPTIONAL)},
    {WPK_FIELD(LABEL, "device", job, device, WPK_OPTIONAL)},
    {WPK_FIELD_INT("threads", job, threads, 1, WPK_JOB_THREADS_MAX, WPK_OPTIONAL)},
    {WPK_FIELD_LIST_MAP("labels", job, labels, label_count, WPK_JOB_LABELS_MAX,
                        wpk_worker_label_fields, WPK_OPTIONAL)},
    {WPK_FIELD_CHECK(check_target)},
    {WPK_FIELD_END},
};

static const struct wpk_field pin_fields[] = {
    {WPK_FIELD(COPY, NULL, job_pin, gene)},
    {WPK_FIELD(LABEL, NULL, job_pin, value)},
    {WPK_FIELD_END},
};

static void put_options(struct wpk_json_writer *writer, const char *key, const void *object)
{
    const struct wpk_job *job = object;
    char name[WPK_JOB_GENE_MAX], value[WPK_JOB_GENE_MAX];
    wpk_json_begin_object(writer, key);
    for (int i = 0; wpk_job_option_at(job->options, i, name, value); i++) {
        wpk_json_put_real(writer, name, strtod(value, NULL));
    }
    wpk_json_end(writer);
}

static void get_options(struct wpk_json_reader *reader, const char *key, void *object)
{
    if (!wpk_json_has(reader, key)) {
        return;
    }
    wpk_json_enter(reader, key);
    while (wpk_json_next(reader)) {
        char value[32];
        const char *name = wpk_json_name(reader);
        snprintf(value, sizeof(value), "%.17g", wpk_json_get_real(reader, NULL, -1e300, 1e300));
        if (wpk_job_set_option(object, name, value) != WPK_OK) {
            wpk_json_fail(reader, NULL, WPK_ERANGE, "the options have more than %d bytes",
                          WPK_JOB_OPTIONS_MAX - 1);
            break;
        }
    }
    wpk_json_leave(reader);
}

/* A client that has read the file sends its text instead. */
static void put_prior(struct wpk_json_writer *writer, const char *key, const void *object)
{
    const struct wpk_job *job = object;
    if (job->prior_text == NULL && job->prior[0] != '\0') {
        wpk_json_put_text(writer, key, job->prior);
    }
}

static void get_prior(struct wpk_json_reader *reader, const char *key, void *object)
{
    struct wpk_job *job = object;
    if (wpk_json_has(reader, key)) {
        wpk_json_get_label(reader, key, job->prior, sizeof(job->prior));
    }
}

static const struct wpk_field search_fields[] = {
    {WPK_FIELD_CUSTOM("strategy", job, strategy, put_word, get_strategy, WPK_OPTIONAL)},
    {WPK_FIELD_WHOLE("options", put_options, get_options)},
    {WPK_FIELD_WHOLE("prior", put_prior, get_prior)},
    {WPK_FIELD_OWNED("prior_text", job, prior_text, WPK_JOB_PRIOR_MAX, WPK_OPTIONAL)},
    {WPK_FIELD(U64, "seed", job, seed, WPK_DEFAULT)},
    {WPK_FIELD_LIST_MAP("pin", job, pins, pin_count, WPK_JOB_PINS_MAX, pin_fields, WPK_OPTIONAL)},
    {WPK_FIELD_END},
};

/* "converged", or an object with one number. */
static void get_until(struct wpk_json_reader *reader, const char *key, void *object)
{
    struct wpk_diag diag = {0};
    char text[WPK_JOB_UNTIL_MAX] = "";
    if (!wpk_json_has(reader, key)) {
        return;
    }
    if (wpk_json_kind_of(reader, key) == WPK_JSON_STRING) {
        get_word(reader, key, text, sizeof(text));
    } else {
        wpk_json_enter(reader, key);
        WPK_JSON_ALLOW(reader, "speedup", "of_peak");
        const char *name = wpk_json_has(reader, "speedup") ? "speedup" : "of_peak";
        double number = wpk_json_get_real(reader, name, 0, 1e6);
        snprintf(text, sizeof(text), "%s=%.9g", name, number);
        wpk_json_leave(reader);
    }
    if (wpk_json_status(reader) == WPK_OK && wpk_job_set_until(object, text, &diag) != WPK_OK) {
        wpk_json_fail(reader, key, WPK_EINVAL, "%s", diag.text);
    }
}

static void put_until(struct wpk_json_writer *writer, const char *key, const void *object)
{
    const struct wpk_job *job = object;
    const char *number = strchr(job->until, '=');
    char name[WPK_JOB_UNTIL_MAX];
    if (number != NULL) {
        snprintf(name, sizeof(name), "%.*s", (int)(number - job->until), job->until);
        wpk_json_begin_object(writer, key);
        wpk_json_put_real(writer, name, strtod(number + 1, NULL));
        wpk_json_end(writer);
    } else if (job->until[0] != '\0') {
        wpk_json_put_text(writer, key, job->until);
    }
}

static void take_total(struct wpk_json_reader *reader WPK_UNUSED, void *object)
{
    struct wpk_job *job = object;
    job->candidates = job->total > 0 ? job->total : job->candidates;
}

static const struct wpk_field budget_fields[] = {
    {WPK_FIELD_INT("total", job, total, 1, WPK_JOB_CANDIDATES_MAX, WPK_OPTIONAL)},
    {WPK_FIELD_CHECK(take_total)},
    {WPK_FIELD_INT("candidates", job, candidates, 1, WPK_JOB_CANDIDATES_MAX, WPK_OPTIONAL)},
    {WPK_FIELD_INT("seconds", job, seconds, 1, WPK_JOB_SECONDS_MAX, WPK_OPTIONAL)},
    {WPK_FIELD_WHOLE("until", put_until, get_until)},
    {WPK_FIELD_END},
};

static const struct wpk_field job_fields[] = {
    {WPK_FIELD(LABEL, "name", job, name, WPK_OPTIONAL)},
    {WPK_FIELD_PART("target", target_fields, WPK_OPTIONAL)},
    {WPK_FIELD_PART("search", search_fields, WPK_OPTIONAL)},
    {WPK_FIELD_PART("budget", budget_fields, WPK_OPTIONAL)},
    {WPK_FIELD_INT("priority", job, priority, -WPK_JOB_PRIORITY_MAX, WPK_JOB_PRIORITY_MAX,
                   WPK_OPTIONAL)},
    {WPK_FIELD_WHOLE("ops", put_ops, get_ops)},
    {WPK_FIELD_END},
};

wpk_err wpk_job_decode(const char *text, size_t size, struct wpk_job *out, struct wpk_diag *diag)
{
    const struct wpk_fields_text from = {text, size, WPK_JOB_SIZE_MAX, NULL, false};
    struct wpk_job job;

    wpk_job_init(&job);
    wpk_err err = wpk_fields_decode(&from, job_fields, &job, diag);
    if (err == WPK_OK) {
        job.source = strndup(text, size); /* a checked text holds no NUL */
        job.source_size = size;
        err = job.source != NULL ? WPK_OK : WPK_ENOMEM;
    }
    if (err == WPK_OK) {
        *out = job;
    } else {
        wpk_job_fini(&job);
    }
    return err;
}

wpk_err wpk_job_encode(const struct wpk_job *job, struct wpk_buf *out)
{
    return wpk_fields_encode(job_fields, job, out);
}
