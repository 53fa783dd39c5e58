/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl kernels: list kernels; pin, unpin, revoke or roll back one. */
#include "client/output.h"
#include "client/session.h"
#include "client/show.h"
#include "schema/device.h"

#include <stdio.h>
#include <string.h>

#define SHORT_HASH 12 /* digits that tell kernels apart for a reader */
#define NAMES_SIZE_MAX ((size_t)256)
#define JOBS_NAMED 1000 /* the newest: operators of older ones go without a name */

/* True if the list of names, separated by ", ", has the name. */
static bool is_named(const char *list, const char *name)
{
    size_t size = strlen(name);

    for (const char *at = strstr(list, name); at != NULL; at = strstr(at + 1, name)) {
        if ((at == list || at[-1] == ' ') && (at[size] == ',' || at[size] == '\0')) {
            return true;
        }
    }
    return false;
}

/* People call one operator by several names.   shape  names: jobs, newest first, that have them; a
 * kernel alone knows only its program */
static void print_names(const struct wpk_api_list *names, const struct wpk_api_kernel *kernel,
                        struct wpk_buf *out)
{
    for (int i = 0; i < names->count; i++) {
        for (int k = 0; k < names->jobs[i].op_count; k++) {
            const struct wpk_api_op *op = &names->jobs[i].ops[k];
            if (strcmp(op->fingerprint, kernel->fingerprint) == 0 &&
                !is_named(wpk_buf_text(out), op->name)) {
                wpk_buf_printf(out, "%s%s", out->size > 0 ? ", " : "", op->name);
            }
        }
    }
    if (out->size == 0) {
        wpk_buf_append_text(out, kernel->name[0] != '\0' ? kernel->name : "-");
    }
}

static void add_kernel(const struct wpk_api_list *names, const struct wpk_api_kernel *kernel,
                       struct wpk_text_table *table)
{
    char fingerprint[SHORT_HASH + 1];
    char time[WPK_FORMAT_SIZE];
    char error[WPK_REPORT_ERROR_SIZE];
    char class[64]; /* with conditions that are not warm: they are part of what decides */
    char threads[16];
    char speedup[24] = "-";
    struct wpk_buf called = {.size_max = NAMES_SIZE_MAX};

    snprintf(fingerprint, sizeof(fingerprint), "%s", kernel->fingerprint);
    if (wpk_device_class_is_emulated(kernel->device)) {
        wpk_format_modelled(kernel->served.time.median_ns, time);
    } else {
        wpk_format_ns(kernel->served.time.median_ns, time);
    }
    snprintf(threads, sizeof(threads), "%d", kernel->threads);
    wpk_report_error(kernel, error);
    if (kernel->speedup > 0) {
        snprintf(speedup, sizeof(speedup), "%.2fx", kernel->speedup);
    }
    const char *state = kernel->revoked     ? "revoked"
                        : kernel->pinned    ? "pinned"
                        : kernel->is_served ? "served"
                                            : "-";
    bool warm = strcmp(kernel->conditions, "warm") == 0;
    snprintf(class, sizeof(class), "%s%s%s", kernel->accuracy, warm ? "" : ", ",
             warm ? "" : kernel->conditions);
    print_names(names, kernel, &called);
    wpk_text_table_add(table,
                       (const char *const[]){kernel->id, wpk_buf_text(&called), fingerprint,
                                             kernel->served.provider, kernel->served.algorithm,
                                             time, speedup, class, error, state, kernel->layouts,
                                             threads, kernel->device, kernel->created});
    wpk_buf_fini(&called);
}

static void fill_kernels(const void *user, const struct wpk_api_list *list,
                         struct wpk_text_table *table)
{
    for (int i = 0; i < list->count; i++) {
        add_kernel(user, &list->kernels[i], table);
    }
}
static wpk_err fetch_names(struct wpk_session *session, struct wpk_arena *arena, void *user,
                           struct wpk_diag *diag)
{
    return wpk_list_read(session, "jobs", "", JOBS_NAMED, arena, user, diag);
}

static const struct wpk_show kernels_show = {
    .path = "/v1/kernels",
    .key = "kernels",
    .column_count = 14,
    .headings = {"kernel", "operator", "fingerprint", "by", "algorithm", "median", "speedup",
                 "class", "error", "state", "layouts", "threads", "device", "created"},
    .right = {[5] = true, [6] = true, [11] = true},
    .rank = {0, 0, 1, 4, 6, 2, 5, 3, 7, 3, 8, 9, 10, 11},
    .fill = fill_kernels,
    .prepare = fetch_names,
};

static wpk_err change(const struct wpk_command_context *context, struct wpk_show_options *options,
                      const char *verb, const char *id, struct wpk_diag *diag)
{
    static const char *const changed[] = {"id", "fingerprint", "provider", "algorithm", NULL};
    static const char *const revoked[] = {"id",
                                          "fingerprint",
                                          "provider",
                                          "algorithm",
                                          "revoked; now served: serves",
                                          "by serves_provider",
                                          "revoked; nothing is served: serves_reason",
                                          NULL};
    const char *const *members = strcmp(verb, "revoke") == 0 ? revoked : changed;
    char path[64];

    snprintf(path, sizeof(path), "/v1/kernels/%s:%s", id, verb);
    return wpk_show_order(context, options, path, NULL, members, diag);
}

/* `kernels VERB KERNEL` */
static wpk_err act(const struct wpk_command_context *context, struct wpk_show_options *options,
                   struct wpk_show *show, const struct wpk_args *args, struct wpk_diag *diag)
{
    static const char *const verbs[] = {"pin", "unpin", "revoke", "rollback", "history", NULL};
    int verb = wpk_show_verb(args->operands[0], verbs, diag);
    char path[64];

    if (verb < 0) {
        return WPK_EINVAL;
    }
    if (args->operand_count == 1) {
        return wpk_fail(diag, WPK_EINVAL,
                        "kernels %s takes the id of a kernel; wpkctl kernels lists them",
                        args->operands[0]);
    }
    const char *id = args->operands[1]; /* as openapi.yaml writes it, else it may be a path */
    if (id[0] != 'k' || id[1] == '\0' || strlen(id) >= 24 ||
        id[1 + strspn(id + 1, "0123456789")] != '\0') {
        return wpk_fail(diag, WPK_EINVAL,
                        "'%s' is not the id of a kernel: k and digits; wpkctl kernels lists them",
                        args->operands[1]);
    }
    if (strcmp(args->operands[0], "history") != 0) {
        return change(context, options, args->operands[0], args->operands[1], diag);
    }
    snprintf(path, sizeof(path), "/v1/kernels/%s/history", args->operands[1]);
    show->path = path; /* every kernel of the same key, revoked ones too */
    return wpk_show_list(context, options, show, "", diag);
}

/* The values that listed kernels must have; NULL: any value. */
struct filter {
    const char *fingerprint, *family, *device, *layouts, *threads, *environment, *provider;
    const char *accuracy, *conditions;
};

static void make_query(const struct filter *filter, struct wpk_buf *query)
{
    wpk_show_add(query, "fingerprint", filter->fingerprint);
    wpk_show_add(query, "family", filter->family);
    wpk_show_add(query, "device", filter->device);
    wpk_show_add(query, "layouts", filter->layouts);
    wpk_show_add(query, "threads", filter->threads);
    wpk_show_add(query, "environment", filter->environment);
    wpk_show_add(query, "provider", filter->provider);
    wpk_show_add(query, "accuracy", filter->accuracy);
    wpk_show_add(query, "conditions", filter->conditions);
}

enum wpk_exit wpk_command_kernels(struct wpk_invocation *call)
{
    struct wpk_show_options show = {.max = WPK_SHOW_MAX_DEFAULT};
    struct filter filter = {0};
    const struct wpk_option options[] = {
        WPK_SHOW_OPTION_ROWS(show),
        WPK_ARGS_TEXT("fingerprint", "HASH", "only of this operator; its first 8 digits do",
                      &filter.fingerprint),
        WPK_ARGS_TEXT("family", "HASH", "only of this family", &filter.family),
        WPK_ARGS_TEXT("device", "CLASS", "only for this device class", &filter.device),
        WPK_ARGS_TEXT("layouts", "fixed|any", "only these", &filter.layouts),
        WPK_ARGS_TEXT("threads", "N", "only for so many", &filter.threads),
        WPK_ARGS_TEXT("environment", "TEXT", "only measured in this one", &filter.environment),
        WPK_ARGS_TEXT("provider", "NAME", "only this one's", &filter.provider),
        WPK_ARGS_TEXT("accuracy", "strict|standard|fast",
                      "or times_direct=K: only what this class serves", &filter.accuracy),
        WPK_ARGS_TEXT("conditions", "warm|cold-constants|cold", "only what was timed so",
                      &filter.conditions),
        WPK_ARGS_TEXT("reason", "TEXT", "why, for those who look at it later", &show.reason),
        WPK_ARGS_END,
    };
    struct wpk_buf query = {0};
    wpk_err err = WPK_OK;

    if (!wpk_command_begin(call, options, 0, 2)) {
        return call->status;
    }
    show.session.need = WPK_SESSION_HISTORY;
    struct wpk_api_list names = {.count = 0};
    struct wpk_show what = kernels_show;
    what.user = &names;
    if (call->args.operand_count > 0) {
        err = act(call->context, &show, &what, &call->args, &call->diag);
    } else {
        make_query(&filter, &query);
        err = wpk_show_list(call->context, &show, &what, wpk_buf_text(&query), &call->diag);
    }
    wpk_buf_fini(&query);
    return wpk_command_end(call, err);
}
