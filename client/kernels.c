/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl kernels: the list, and which of them are served. */
#include "client/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHORT_HASH 12 /* digits that tell kernels apart for a reader */

static wpk_err fill_kernels(const struct wpk_buf *body, struct wpk_arena *arena,
                            struct wpk_table *table, struct wpk_diag *diag)
{
    struct wpk_api_kernel *kernels;
    int count;

    wpk_err err = wpk_api_decode_kernels(body, arena, &kernels, &count, diag);
    for (int i = 0; err == WPK_OK && i < count; i++) {
        const struct wpk_api_kernel *kernel = &kernels[i];
        char fingerprint[SHORT_HASH + 1];
        char time[WPK_FORMAT_SIZE];
        char threads[16];
        char speedup[24] = "-";
        snprintf(fingerprint, sizeof(fingerprint), "%s", kernel->fingerprint);
        wpk_format_ns(kernel->served.time.median_ns, time);
        snprintf(threads, sizeof(threads), "%d", kernel->threads);
        if (kernel->speedup > 0) {
            snprintf(speedup, sizeof(speedup), "%.2fx", kernel->speedup);
        }
        wpk_table_add(table, (const char *const[]){kernel->id, fingerprint, kernel->served.provider,
                                                   kernel->served.algorithm, time, speedup,
                                                   kernel->layouts, threads, kernel->device,
                                                   kernel->created});
    }
    return err;
}

static const struct wpk_show kernels_show = {
    .path = "/v1/kernels",
    .key = "kernels",
    .column_count = 10,
    .headings = {"kernel", "fingerprint", "by", "algorithm", "median", "speedup", "layouts",
                 "threads", "device", "created"},
    .right = {[4] = true, [5] = true, [7] = true},
    .fill = fill_kernels,
};

/* As openapi.yaml writes it; anything else could be a path of its own. */
static bool is_kernel_id(const char *id)
{
    return id[0] == 'k' && id[1] != '\0' && strlen(id) < 24 &&
           strspn(id + 1, "0123456789") == strlen(id + 1);
}

static wpk_err change(const struct wpk_command_context *context,
                      const struct wpk_show_options *options, const char *verb, const char *id,
                      struct wpk_diag *diag)
{
    static const char *const verbs[] = {"pin", "unpin", "revoke", "rollback", NULL};
    static const char *const members[] = {"id", "fingerprint", "provider", "algorithm", NULL};
    char path[64];
    struct wpk_buf body = {0};

    if (wpk_show_verb(verb, verbs, diag) < 0) {
        return WPK_EINVAL;
    }
    if (!is_kernel_id(id)) {
        wpk_diag_set(diag, "'%s' is not the id of a kernel: k and digits", id);
        return WPK_EINVAL;
    }
    snprintf(path, sizeof(path), "/v1/kernels/%s:%s", id, verb);
    wpk_show_body(NULL, options->reason, &body);
    wpk_err err = wpk_buf_status(&body);
    if (err == WPK_OK) {
        err = wpk_show_change(context, options, path, wpk_buf_text(&body), members, diag);
    }
    wpk_buf_fini(&body);
    return err;
}

/* What the list is cut down to; NULL: everything. */
struct filter {
    const char *fingerprint, *family, *device, *layouts, *threads, *environment, *provider;
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
}

static enum wpk_exit kernels_main(const struct wpk_command *command,
                                  const struct wpk_command_context *context, int argc, char **argv)
{
    struct wpk_show_options show = {.max = WPK_SHOW_MAX_DEFAULT};
    struct filter filter = {0};
    const struct wpk_option options[] = {
        WPK_SHOW_OPTION_ROWS(show),
        {"fingerprint", 0, "HASH", "only of this operator", WPK_OPTION_TEXT, &filter.fingerprint, 0,
         0},
        {"family", 0, "HASH", "only of this family", WPK_OPTION_TEXT, &filter.family, 0, 0},
        {"device", 0, "CLASS", "only for this device class", WPK_OPTION_TEXT, &filter.device, 0, 0},
        {"layouts", 0, "NAME", "only fixed, or any", WPK_OPTION_TEXT, &filter.layouts, 0, 0},
        {"threads", 0, "N", "only for so many", WPK_OPTION_TEXT, &filter.threads, 0, 0},
        {"environment", 0, "TEXT", "only measured in this one", WPK_OPTION_TEXT,
         &filter.environment, 0, 0},
        {"provider", 0, "NAME", "only this one's", WPK_OPTION_TEXT, &filter.provider, 0, 0},
        {"reason", 0, "TEXT", "why, for those who look at it later", WPK_OPTION_TEXT, &show.reason,
         0, 0},
        {NULL, 0, NULL, NULL, WPK_OPTION_FLAG, NULL, 0, 0},
    };
    struct wpk_args args;
    struct wpk_buf query = {0};
    struct wpk_diag diag = {0};
    enum wpk_exit status = WPK_EXIT_OK;
    wpk_err err = WPK_OK;

    if (!wpk_command_begin(command, options, argc, argv, 0, 2, &args, &status)) {
        return status;
    }
    show.session.need = WPK_SESSION_HISTORY;
    if (args.operand_count == 1) {
        wpk_diag_set(&diag, "kernels %s takes the id of a kernel", args.operands[0]);
        err = WPK_EINVAL;
    } else if (args.operand_count == 2) {
        err = change(context, &show, args.operands[0], args.operands[1], &diag);
    } else {
        make_query(&filter, &query);
        err = wpk_show_list(context, &show, &kernels_show, wpk_buf_text(&query), &diag);
    }
    wpk_buf_fini(&query);
    return err != WPK_OK ? wpk_command_fail(err, &diag) : WPK_EXIT_OK;
}

const struct wpk_command wpk_command_kernels = {
    .name = "kernels",
    .operands = "[pin|unpin|revoke|rollback KERNEL]",
    .summary = "every kernel that is served; or keep one, take one back, return to the one before",
    .run = kernels_main,
};
