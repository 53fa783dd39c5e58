/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that were looked up and have no kernel. */
#include "coordinator/pages/pages.h"

#include "common/json.h"
#include "common/markup.h"

#include <string.h>

#define OP_MAX 4096 /* bytes of an operator; longer ones are not kept */

static void put_miss(struct wpk_buf *out, struct wpk_json_reader *r)
{
    struct wpk_buf op = {.size_max = OP_MAX};
    wpk_markup_raw(out, "<tr>");
    wpk_page_cell_time(out, (uint64_t)wpk_json_get_int(r, "lost_ns", 0, WPK_JSON_INT_MAX), 0);
    wpk_page_cell_count(out, wpk_json_get_int(r, "lookups", 0, WPK_JSON_INT_MAX));
    wpk_page_cell_count(out, wpk_json_get_int(r, "calls", 0, WPK_JSON_INT_MAX));
    wpk_page_cell(out, wpk_json_get_text(r, "match", 64));
    wpk_page_cell_count(out, wpk_json_get_int(r, "threads", 0, WPK_JSON_INT_MAX));
    wpk_page_cell(out, wpk_json_get_text(r, "device", 512));
    wpk_json_enter(r, "op");
    if (wpk_json_kind_of(r, "op") == WPK_JSON_STRING) {
        wpk_buf_append_text(&op, wpk_json_get_text(r, "op", OP_MAX));
    } else {
        wpk_json_get_raw(r, "op", &op); /* a shorthand */
    }
    wpk_json_leave(r);
    wpk_page_cell(out, wpk_buf_text(&op));
    wpk_markup_raw(out, "</tr>\n");
    wpk_buf_fini(&op);
}

wpk_err wpk_page_misses(struct wpk_buf *out, const struct wpk_buf *misses, const char *next)
{
    const struct wpk_page page = {.title = "Misses", .here = "misses", .is_live = true};
    struct wpk_json_reader *r;
    wpk_err err = wpk_json_open(wpk_buf_text(misses), misses->size, 0, &r, NULL);
    if (err != WPK_OK) {
        return err;
    }
    wpk_page_begin(out, &page);
    wpk_markup_raw(out, "<h1>Misses</h1>\n");
    wpk_page_begin_table(out, "misses", "Looked up, and not there",
                         "#Time lost|#Lookups|#Calls|Match|#Threads|Device|Operator");
    wpk_json_enter_array(r, "misses");
    while (wpk_json_next(r)) {
        put_miss(out, r);
    }
    wpk_json_leave(r);
    err = wpk_json_status(r);
    wpk_json_close(r);
    wpk_page_end_table(out);
    wpk_page_next(out, "misses?page_token=", next);
    wpk_markup_raw(out, "<h2>Commands</h2>\n");
    wpk_page_command(out, "misses", "--submit", "makes a job of those of the first one's device");
    wpk_page_end(out);
    return err;
}
