/* SPDX-License-Identifier: Apache-2.0 */
/* Shows lists of wpkd as tables or JSON, and changes one of their items. */
#ifndef WPK_CLIENT_SHOW_H
#define WPK_CLIENT_SHOW_H

#include "client/output.h"
#include "client/session.h"

/* One list: its path, and how a table shows it. */
struct wpk_show {
    const char *path;
    const char *key;
    int column_count;
    const char *headings[WPK_TEXT_TABLE_COLUMNS_MAX];
    bool right[WPK_TEXT_TABLE_COLUMNS_MAX];
    uint8_t rank[WPK_TEXT_TABLE_COLUMNS_MAX]; /* this and `prose` as in struct wpk_text_table */
    bool prose[WPK_TEXT_TABLE_COLUMNS_MAX];
    /* The members that the columns show. `add`, if it is not NULL, makes an item's row instead, and
     * `fill` all rows of a list that wpk_api_decode_list() knows. */
    const char *members[WPK_TEXT_TABLE_COLUMNS_MAX];
    void (*add)(const void *user, struct wpk_json_reader *r, struct wpk_arena *arena,
                struct wpk_text_table *table);
    void (*fill)(const void *user, const struct wpk_api_list *list, struct wpk_text_table *table);
    /* Fetches other resources that `fill` needs; NULL: none. */
    wpk_err (*prepare)(struct wpk_session *session, struct wpk_arena *arena, void *user,
                       struct wpk_diag *diag);
    void *user; /* argument of add, fill and prepare */
};

/* Options of a command that shows a list. */
struct wpk_show_options {
    struct wpk_session_options session;
    struct wpk_output output;
    int64_t max; /* items to show, the newest */
    const char *reason;
};

#define WPK_SHOW_MAX_DEFAULT 1000

#define WPK_SHOW_OPTION_ROWS(options)                                                              \
    WPK_SESSION_OPTION_ROWS((options).session),                                                    \
        WPK_ARGS_INT("max", "N", "at most so many, the newest; default 1000", &(options).max, 1,   \
                     WPK_API_LIST_MAX),                                                            \
        WPK_OUTPUT_OPTION_ROWS((options).output)

/* Append name=value to a query, percent-encoded; append nothing if the value is NULL. */
void wpk_show_add(struct wpk_buf *query, const char *name, const char *value);

/* Fetch the list and print it.   query: "" or as wpk_show_add made it */
wpk_err wpk_show_list(const struct wpk_command_context *context, struct wpk_show_options *options,
                      const struct wpk_show *show, const char *query, struct wpk_diag *diag);

/* Send a request that changes a resource, and print the answer: as JSON, or the values of `members`
 * on one line.
 *   shape   body: JSON to POST; NULL: DELETE. members: ends with NULL */
wpk_err wpk_show_change(const struct wpk_command_context *context, struct wpk_show_options *options,
                        const char *path, const char *body, const char *const *members,
                        struct wpk_diag *diag);

/* The same, with {"name": name, "reason": options->reason}, without members that are NULL. */
wpk_err wpk_show_order(const struct wpk_command_context *context, struct wpk_show_options *options,
                       const char *path, const char *name, const char *const *members,
                       struct wpk_diag *diag);

/* The index of `verb` in `verbs`, which ends with NULL; -1, with a list of the verbs in `diag`, if
 * it is not there. */
int wpk_show_verb(const char *verb, const char *const *verbs, struct wpk_diag *diag);

/* The number at `key`; 0 if there is none, or null. */
double wpk_show_number(struct wpk_json_reader *r, const char *key);

#endif
