/* SPDX-License-Identifier: Apache-2.0 */
/* Trials of a search: a list of them, and two side by side. */
#include "coordinator/pages/pages.h"

#include "common/json.h"
#include "common/markup.h"

#include <stdio.h>
#include <string.h>

static const char *text_of(struct wpk_json_reader *r, const char *key)
{
    return wpk_json_kind_of(r, key) == WPK_JSON_STRING
               ? wpk_json_get_text(r, key, WPK_JSON_SIZE_MAX_DEFAULT)
               : "";
}

static int64_t int_of(struct wpk_json_reader *r, const char *key)
{
    return wpk_json_kind_of(r, key) == WPK_JSON_NUMBER
               ? wpk_json_get_int(r, key, -1, WPK_JSON_INT_MAX)
               : 0;
}

static void put_trial(struct wpk_buf *out, struct wpk_json_reader *r)
{
    struct wpk_api_time time = {0};
    char line[WPK_MARKUP_VALUE_MAX + 8];
    int64_t index = int_of(r, "index");
    bool censored =
        wpk_json_kind_of(r, "censored") == WPK_JSON_BOOL && wpk_json_get_bool(r, "censored");
    if (wpk_json_kind_of(r, "time_ns") == WPK_JSON_OBJECT) {
        wpk_json_enter(r, "time_ns");
        time.median_ns = (uint64_t)int_of(r, "median");
        time.mad_ns = (uint64_t)int_of(r, "mad");
        wpk_json_leave(r);
    }
    int64_t spilled = 0;
    if (wpk_json_kind_of(r, "launch") == WPK_JSON_OBJECT) {
        wpk_json_enter(r, "launch");
        spilled = int_of(r, "local_bytes");
        wpk_json_leave(r);
    }
    wpk_markup_raw(out, "<tr>");
    if (index < 0) {
        wpk_markup_raw(out, "<td class=\"n\">-</td>");
    } else {
        wpk_page_cell_count(out, index);
    }
    wpk_markup(out, "<td>%s</td>", text_of(r, "provider"));
    wpk_markup(out, "<td>%s</td>", censored ? "raced out" : text_of(r, "outcome"));
    wpk_page_cell_time(out, &time);
    wpk_page_cell(out, text_of(r, "candidate"));
    const char *log = text_of(r, "log");
    snprintf(line, sizeof line, "%.*s", (int)strcspn(log, "\n"), log);
    if (spilled > 0 && line[0] == '\0') {
        snprintf(line, sizeof line, "%lld bytes of registers spilled", (long long)spilled);
    }
    wpk_page_cell(out, line);
    wpk_markup_raw(out, "</tr>\n");
}

void wpk_page_trials(struct wpk_buf *out, const struct wpk_page_job_view *view)
{
    struct wpk_json_reader *r = NULL;
    struct wpk_buf path = {0};
    if (wpk_json_open(wpk_buf_text(view->trials), view->trials->size, WPK_BUF_SIZE_MAX_DEFAULT, &r,
                      NULL) != WPK_OK) {
        return;
    }
    wpk_markup_raw(out, "<h2>Trials</h2>\n");
    if (view->outcome[0] != '\0') {
        wpk_markup(out, "<p>Those that ended with %s; <a href=\"", view->outcome);
        wpk_page_op_link(out, view);
        wpk_markup_raw(out, "#trials\">all</a>.</p>\n");
    }
    wpk_page_begin_table(out, "trials", "In the order in which they were asked for",
                         "#Ask|Provider|Outcome|#Time|Candidate|Log");
    wpk_json_enter_array(r, "trials");
    while (wpk_json_next(r)) {
        put_trial(out, r);
    }
    wpk_json_leave(r);
    wpk_page_end_table(out);
    wpk_page_op_link(&path, view);
    if (view->outcome[0] != '\0') {
        wpk_markup_raw(&path, "&amp;outcome=");
        wpk_markup_url(&path, view->outcome);
    }
    wpk_markup_raw(&path, "&amp;page_token=");
    wpk_page_next(out, wpk_buf_text(&path), view->is_report ? "" : text_of(r, "next_page_token"));
    wpk_buf_fini(&path);
    if (!view->is_report) {
        wpk_markup(out,
                   "<form action=\"trials\"><input type=\"hidden\" name=\"id\" value=\"%s\">"
                   "<input type=\"hidden\" name=\"op\" value=\"%s\">"
                   "<label>Ask <input name=\"a\" size=\"6\" required></label> "
                   "<label>beside <input name=\"b\" size=\"6\" required></label> "
                   "<button>Compare</button></form>\n",
                   view->job->id, view->job->ops[view->op].name);
    }
    wpk_json_close(r);
}

/* ---- two trials */

/* The end of the word that begins here. */
static size_t word_size(const char *text)
{
    return strcspn(text, " ");
}

/* The value that a candidate gives to a gene, with its size; "" if it has none.
 *   shape   name [size] with its '=' */
static const char *find_gene(const char *candidate, const char *name, size_t size, size_t *found)
{
    for (const char *at = candidate; *at != '\0'; at += strspn(at, " ")) {
        size_t word = word_size(at);
        if (word >= size && memcmp(at, name, size) == 0) {
            *found = word - size;
            return at + size;
        }
        at += word;
    }
    *found = 0;
    return "";
}

static void put_gene(struct wpk_buf *out, const char *name, size_t size, const char *left,
                     const char *right)
{
    size_t sizes[2];
    const char *values[2] = {find_gene(left, name, size, &sizes[0]),
                             find_gene(right, name, size, &sizes[1])};
    bool same = sizes[0] == sizes[1] && memcmp(values[0], values[1], sizes[0]) == 0;
    char text[WPK_MARKUP_VALUE_MAX + 8];
    snprintf(text, sizeof text, "%.*s", (int)size - 1, name);
    wpk_markup(out, "<tr><td>%s</td>", text);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "%.*s", (int)sizes[i], values[i]);
        wpk_markup_raw(out, same ? "<td>" : "<td><strong>");
        wpk_markup(out, "%s", text);
        wpk_markup_raw(out, same ? "</td>" : "</strong></td>");
    }
    wpk_markup_raw(out, "</tr>\n");
}

/* The genes of the first candidate, then those that the second one has alone. */
static void put_genes(struct wpk_buf *out, const char *left, const char *right)
{
    wpk_page_begin_table(out, "genes", "Genes; those that differ stand out", "Gene|One|Other");
    for (int turn = 0; turn < 2; turn++) {
        for (const char *at = turn == 0 ? left : right; *at != '\0'; at += strspn(at, " ")) {
            size_t word = word_size(at), size = strcspn(at, "= "), unused;
            bool gene = size < word;
            if (gene && (turn == 0 || find_gene(left, at, size + 1, &unused)[0] == '\0')) {
                put_gene(out, at, size + 1, left, right);
            }
            at += word;
        }
    }
    wpk_page_end_table(out);
}

wpk_err wpk_page_trial_pair(struct wpk_buf *out, const char *job, const char *op,
                            const struct wpk_buf *const answers[2])
{
    struct wpk_json_reader *r[2] = {NULL, NULL};
    const char *candidates[2] = {"", ""};
    const struct wpk_page page = {.title = op, .here = "./"};
    wpk_err err = WPK_OK;
    wpk_page_begin(out, &page);
    wpk_markup(out, "<h1>Two trials of <bdi>%s</bdi></h1>\n<p><a href=\"job?id=", op);
    wpk_markup_url(out, job);
    wpk_markup_raw(out, "&amp;op=");
    wpk_markup_url(out, op);
    wpk_markup_raw(out, "\">All trials</a></p>\n");
    wpk_page_begin_table(out, "trials", "Outcomes", "#Ask|Provider|Outcome|#Time|Candidate|Log");
    for (int i = 0; i < 2 && err == WPK_OK; i++) {
        err = wpk_json_open(wpk_buf_text(answers[i]), answers[i]->size, WPK_BUF_SIZE_MAX_DEFAULT,
                            &r[i], NULL);
        if (err == WPK_OK) {
            wpk_json_enter_array(r[i], "trials");
            err = wpk_json_next(r[i]) ? WPK_OK : WPK_ENOENT;
        }
        if (err == WPK_OK) {
            put_trial(out, r[i]);
            candidates[i] = text_of(r[i], "candidate");
        }
    }
    wpk_page_end_table(out);
    put_genes(out, candidates[0], candidates[1]);
    wpk_page_end(out, &page);
    wpk_json_close(r[0]);
    wpk_json_close(r[1]);
    return err;
}
