/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/launch_plan.h"

#include "common/json.h"

#include <string.h>

#define BLOCKS_MAX INT32_MAX
#define THREADS_MAX 1024
#define SHARED_BYTES_MAX ((int64_t)1 << 20)
#define SCRATCH_BYTES_MAX ((int64_t)1 << 40)

static void put_plan(struct wpk_json_writer *w, const struct wpk_launch_plan *plan)
{
    wpk_json_put_int(w, "version", WPK_LAUNCH_PLAN_VERSION);
    wpk_json_put_text(w, "architecture", plan->architecture);
    wpk_json_put_int(w, "arguments", plan->argument_count);
    wpk_json_begin_array(w, "launches");
    for (int i = 0; i < plan->launch_count; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "entry", plan->launch[i].entry);
        wpk_json_put_int(w, "blocks", plan->launch[i].blocks);
        wpk_json_put_int(w, "threads", plan->launch[i].threads);
        wpk_json_put_int(w, "shared_bytes", plan->launch[i].shared_bytes);
        wpk_json_end(w);
    }
    wpk_json_end(w);
    wpk_json_begin_array(w, "scratch");
    for (int i = 0; i < plan->scratch_count; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_int(w, "bytes", plan->scratch[i].bytes);
        wpk_json_put_int(w, "offset", plan->scratch[i].offset);
        wpk_json_put_bool(w, "zeroed", plan->scratch[i].zeroed);
        wpk_json_end(w);
    }
    wpk_json_end(w);
}

wpk_err wpk_launch_plan_encode(const struct wpk_launch_plan *plan, const char *code,
                               struct wpk_buf *out)
{
    WPK_ASSERT(plan->launch_count >= 1);
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    put_plan(w, plan);
    wpk_err err = wpk_json_print(w, false, out);
    wpk_json_writer_free(w);
    wpk_buf_append_byte(out, '\n');
    wpk_buf_append_text(out, code);
    return err == WPK_OK ? wpk_buf_status(out) : err;
}

static void get_launches(struct wpk_json_reader *r, struct wpk_launch_plan *plan)
{
    wpk_json_enter_array(r, "launches");
    while (wpk_json_next(r)) {
        if (plan->launch_count == WPK_LAUNCHES_MAX) {
            wpk_json_fail(r, NULL, WPK_ERANGE, "more than %d launches", WPK_LAUNCHES_MAX);
            break;
        }
        struct wpk_launch_step *launch = &plan->launch[plan->launch_count++];
        wpk_json_enter(r, NULL);
        WPK_JSON_ALLOW(r, "entry", "blocks", "threads", "shared_bytes");
        wpk_json_get_label(r, "entry", launch->entry, sizeof(launch->entry));
        launch->blocks = wpk_json_get_int(r, "blocks", 1, BLOCKS_MAX);
        launch->threads = wpk_json_get_int(r, "threads", 1, THREADS_MAX);
        launch->shared_bytes = wpk_json_get_int(r, "shared_bytes", 0, SHARED_BYTES_MAX);
        wpk_json_leave(r);
    }
    wpk_json_leave(r);
    if (plan->launch_count == 0) {
        wpk_json_fail(r, "launches", WPK_EINVAL, "there must be a launch");
    }
}

static void get_scratch(struct wpk_json_reader *r, struct wpk_launch_plan *plan)
{
    wpk_json_enter_array(r, "scratch");
    while (wpk_json_next(r)) {
        if (plan->scratch_count == WPK_LAUNCH_SCRATCH_MAX) {
            wpk_json_fail(r, NULL, WPK_ERANGE, "more than %d tensors", WPK_LAUNCH_SCRATCH_MAX);
            break;
        }
        struct wpk_launch_scratch *scratch = &plan->scratch[plan->scratch_count++];
        wpk_json_enter(r, NULL);
        WPK_JSON_ALLOW(r, "bytes", "offset", "zeroed");
        scratch->bytes = wpk_json_get_int(r, "bytes", 1, SCRATCH_BYTES_MAX);
        scratch->offset = wpk_json_get_int(r, "offset", 0, SCRATCH_BYTES_MAX);
        scratch->zeroed = wpk_json_get_bool(r, "zeroed");
        if (wpk_json_status(r) == WPK_OK && scratch->offset >= scratch->bytes) {
            wpk_json_fail(r, "offset", WPK_ERANGE, "outside of the tensor");
        }
        wpk_json_leave(r);
    }
    wpk_json_leave(r);
}

static void get_plan(struct wpk_json_reader *r, struct wpk_launch_plan *plan)
{
    int64_t version = wpk_json_get_int(r, "version", 0, WPK_JSON_INT_MAX);
    if (wpk_json_status(r) == WPK_OK && version != WPK_LAUNCH_PLAN_VERSION) {
        wpk_json_fail(r, "version", WPK_EMISMATCH,
                      "the image has version %lld, this wpk reads version %d", (long long)version,
                      WPK_LAUNCH_PLAN_VERSION);
        return;
    }
    WPK_JSON_ALLOW(r, "version", "architecture", "arguments", "launches", "scratch");
    wpk_json_get_label(r, "architecture", plan->architecture, sizeof(plan->architecture));
    plan->argument_count = (int)wpk_json_get_int(r, "arguments", 1, WPK_LAUNCH_ARGUMENTS_MAX);
    get_launches(r, plan);
    get_scratch(r, plan);
}

wpk_err wpk_launch_plan_decode(const char *image, size_t size, struct wpk_launch_plan *out,
                               const char **code, struct wpk_diag *diag)
{
    const char *end = memchr(image, '\n', size);
    size_t length = end != NULL ? (size_t)(end - image) : size;
    struct wpk_json_reader *r = NULL;
    struct wpk_launch_plan plan = {0};
    wpk_err err = wpk_json_open(image, length, WPK_LAUNCH_PLAN_SIZE_MAX, &r, diag);
    if (err != WPK_OK) {
        return err;
    }
    get_plan(r, &plan);
    if (end == NULL || length + 1 == size) {
        wpk_json_fail(r, NULL, WPK_EPARSE, "the image has no code");
    }
    err = wpk_json_status(r);
    wpk_json_close(r);
    if (err == WPK_OK) {
        *out = plan;
        *code = end + 1;
    }
    return err;
}
