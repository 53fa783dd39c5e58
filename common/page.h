/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of wpkd for browsers, and reports, which are pages in a file of their own.
 *
 * All pages lie beside each other, and name each other and their style by relative URLs, so that a
 * proxy may put them below any path. They are whole without the script. */
#ifndef WPK_COMMON_PAGE_H
#define WPK_COMMON_PAGE_H

#include "common/buf.h"

#include <stdint.h>

/* Content-Security-Policy of a page, and of a report. */
extern const char wpk_page_policy[];
#define WPK_PAGE_REPORT_POLICY                                                                     \
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "         \
    "frame-ancestors 'none'; sandbox"
/* The text of page.css. */
extern const unsigned char wpk_page_style[];
extern const size_t wpk_page_style_size;

struct wpk_page {
    const char *title;
    const char *here; /* its link in the navigation; "": none */
    bool is_live;     /* the script asks for it again */
    bool is_file;     /* a report: it has its style, and no links */
};

/* Append the head of a page, up to its content. */
void wpk_page_begin(struct wpk_buf *out, const struct wpk_page *page);
void wpk_page_end(struct wpk_buf *out);

/* ---- parts */

/* Append a heading of a table: `columns`, separated by '|'; those that begin with '#' are numbers.
 * The table ends with wpk_page_end_table(). */
void wpk_page_begin_table(struct wpk_buf *out, const char *id, const char *caption,
                          const char *columns);
void wpk_page_end_table(struct wpk_buf *out);
/* Append a cell. A time that was not measured and a ratio of 0 are "-". */
void wpk_page_cell(struct wpk_buf *out, const char *text);
void wpk_page_cell_time(struct wpk_buf *out, uint64_t median_ns, uint64_t mad_ns);
void wpk_page_cell_ratio(struct wpk_buf *out, double ratio);
void wpk_page_cell_count(struct wpk_buf *out, int64_t count);
/* Append a term with its value; nothing if the value is "". */
void wpk_page_term(struct wpk_buf *out, const char *name, const char *value);
/* Append the command that would do something: "wpkctl VERB WORD", and what that is. */
void wpk_page_command(struct wpk_buf *out, const char *verb, const char *word, const char *what);
/* Append a foldable text, such as a schedule; nothing for "".   shape  id: unique in the page */
void wpk_page_fold(struct wpk_buf *out, const char *id, const char *title, const char *text);
/* Append a link to the next page of a list: `path`, which ends in "page_token=", and the token; ""
 * for none. `path` is markup. */
void wpk_page_next(struct wpk_buf *out, const char *path, const char *token);

/* ---- pages without data */

/* The page on which a token is pasted; `problem`: why the last one was not taken; "": none yet. */
void wpk_page_sign_in(struct wpk_buf *out, const char *problem);
void wpk_page_problem(struct wpk_buf *out, int status, const char *text);

#endif
