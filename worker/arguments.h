/* SPDX-License-Identifier: Apache-2.0 */
/* What wpk-worker was told: on its command line, and in a file whose members are named like the
 * options, with '_' for '-'. The command line counts where both say something. */
#ifndef WPK_WORKER_ARGUMENTS_H
#define WPK_WORKER_ARGUMENTS_H

#include "common/arena.h"
#include "common/log.h"
#include "schema/message.h"

extern const char wpk_arguments_usage[];

/* Texts live in `arena`, or are the command line's. */
struct wpk_arguments {
    struct wpk_arena arena;
    const char *config;
    const char *url;
    const char *ca;         /* file of certificates that are trusted; NULL: the system's */
    const char *token_file; /* NULL: none was named */
    const char *data;       /* NULL: not said, as the next two */
    const char *name;
    const char *trace;
    struct wpk_worker_label labels[WPK_WORKER_LABELS_MAX];
    uint32_t label_count;
    enum wpk_isa isa_max;
    int slot_count; /* 0: as many as cores */
    bool cpu;
    bool build_only;
    bool run_only;
    bool insecure; /* a token may go over tcp:// to another machine */
    bool is_private;
    enum wpk_log_level log_level;
    enum wpk_log_format log_format;
    bool help; /* only print the usage, or the version */
    bool version;
};

/*   owns    caller calls wpk_arguments_fini, after a failure too
 *   errors  WPK_EINVAL with what is wrong; those of wpk_config_file_open
 */
WPK_MUST_CHECK wpk_err wpk_arguments_parse(int argc, char **argv, struct wpk_arguments *out,
                                           struct wpk_diag *diag);
void wpk_arguments_fini(struct wpk_arguments *arguments);

/* The token, without the white space around it: of the file that was named, else of `token` in the
 * directory `credentials` where the service manager keeps it; "" where there is neither.
 *
 *   shape   credentials may be NULL; out [WPK_TOKEN_MAX]
 *   errors  WPK_EINVAL empty or too long, or it would go in clear to another machine without
 *           --insecure; those of wpk_fs_read
 */
WPK_MUST_CHECK wpk_err wpk_arguments_read_token(const struct wpk_arguments *arguments,
                                                const char *credentials, char *out,
                                                struct wpk_diag *diag);

#endif
