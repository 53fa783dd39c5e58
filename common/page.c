/* SPDX-License-Identifier: Apache-2.0 */
#include "common/page.h"

#include "common/format.h"
#include "common/markup.h"

#include <stdio.h>
#include <string.h>

#define LONG_TEXT 80                /* bytes: its cell is wide on a phone, too */
#define FOLD_MAX ((size_t)16 << 10) /* bytes of a foldable text */

const char wpk_page_policy[] =
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action "
    "'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'";

static const struct {
    const char *link;
    const char *name;
} places[] = {{"./", "Jobs"}, {"kernels", "Kernels"}, {"misses", "Misses"}, {"fleet", "Fleet"}};

void wpk_page_begin(struct wpk_buf *out, const struct wpk_page *page)
{
    wpk_markup(out,
               "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
               "<title>%s - Woodpecker</title>\n",
               page->title);
    if (page->is_file) {
        wpk_markup_raw(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
                            "'none'; style-src 'unsafe-inline'\">\n<style>\n");
        wpk_buf_append(out, wpk_page_style, wpk_page_style_size);
        wpk_markup_raw(out, "</style>\n</head>\n<body>\n<main>\n");
        return;
    }
    wpk_markup_raw(out, "<link rel=\"stylesheet\" href=\"style.css\">\n"
                        "<script src=\"script.js\" defer></script>\n</head>\n<body>\n"
                        "<header><strong>Woodpecker</strong><nav aria-label=\"Pages\">");
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        bool here = strcmp(places[i].link, page->here) == 0;
        wpk_markup(out, "<a href=\"%s\"", places[i].link);
        wpk_markup_raw(out, here ? " aria-current=\"page\"" : "");
        wpk_markup(out, ">%s</a>", places[i].name);
    }
    wpk_markup_raw(out, "</nav><span id=\"line\" class=\"bad\" role=\"status\"></span></header>\n");
    wpk_markup_raw(out, page->is_live ? "<main data-live>\n" : "<main>\n");
}

void wpk_page_end(struct wpk_buf *out)
{
    wpk_markup_raw(out, "</main>\n</body>\n</html>\n");
}

/* ---- parts */

void wpk_page_begin_table(struct wpk_buf *out, const char *id, const char *caption,
                          const char *columns)
{
    wpk_markup(out,
               "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">"
               "<table id=\"%s\"><caption>%s</caption><thead><tr>",
               caption, id, caption);
    for (const char *at = columns; *at != '\0';) {
        char name[64];
        size_t size = strcspn(at, "|");
        bool is_number = at[0] == '#';
        snprintf(name, sizeof name, "%.*s", (int)(size - is_number), at + is_number);
        wpk_markup_raw(out, is_number ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">");
        wpk_markup(out, "%s</th>", name);
        at += size + (at[size] == '|');
    }
    wpk_markup_raw(out, "</tr></thead><tbody>\n");
}

void wpk_page_end_table(struct wpk_buf *out)
{
    wpk_markup_raw(out, "</tbody></table></div>\n");
}

void wpk_page_cell(struct wpk_buf *out, const char *text)
{
    wpk_markup_raw(out, strnlen(text, LONG_TEXT) < LONG_TEXT ? "<td class=\"text\">"
                                                             : "<td class=\"text long\">");
    wpk_markup(out, "<bdi>%s</bdi></td>", text);
}

void wpk_page_cell_time(struct wpk_buf *out, uint64_t median_ns, uint64_t mad_ns)
{
    char median[WPK_FORMAT_SIZE], mad[WPK_FORMAT_SIZE];
    wpk_format_ns(median_ns, median);
    wpk_format_ns(mad_ns, mad);
    if (median_ns == 0) {
        wpk_markup_raw(out, "<td class=\"n\">-</td>");
    } else if (mad_ns == 0) {
        wpk_markup(out, "<td class=\"n\" data-v=\"%llu\">%s</td>", (unsigned long long)median_ns,
                   median);
    } else {
        wpk_markup(out, "<td class=\"n\" data-v=\"%llu\">%s <span class=\"faint\">± %s</span></td>",
                   (unsigned long long)median_ns, median, mad);
    }
}

void wpk_page_cell_ratio(struct wpk_buf *out, double ratio)
{
    if (ratio > 0) {
        wpk_markup(out, "<td class=\"n\" data-v=\"%.4f\">%.2f×</td>", ratio, ratio);
    } else {
        wpk_markup_raw(out, "<td class=\"n\">-</td>");
    }
}

void wpk_page_cell_count(struct wpk_buf *out, int64_t count)
{
    wpk_markup(out, "<td class=\"n\">%lld</td>", (long long)count);
}

void wpk_page_term(struct wpk_buf *out, const char *name, const char *value)
{
    if (value[0] != '\0') {
        wpk_markup(out, "<dt>%s</dt><dd><bdi>%s</bdi></dd>\n", name, value);
    }
}

void wpk_page_command(struct wpk_buf *out, const char *verb, const char *word, const char *what)
{
    struct wpk_buf quoted = {0};
    wpk_format_word(word, &quoted);
    wpk_markup(out, "<p class=\"command\"><code>wpkctl %s %s</code> %s</p>\n", verb,
               wpk_buf_text(&quoted), what);
    wpk_buf_fini(&quoted);
}

void wpk_page_fold(struct wpk_buf *out, const char *id, const char *title, const char *text)
{
    if (text[0] == '\0') {
        return;
    }
    wpk_markup(out, "<details id=\"%s\"><summary>%s</summary><pre tabindex=\"0\">", id, title);
    wpk_markup_text(out, text, FOLD_MAX);
    wpk_markup_raw(out, "</pre></details>\n");
}

void wpk_page_next(struct wpk_buf *out, const char *path, const char *token)
{
    if (token[0] == '\0') {
        return;
    }
    wpk_markup_raw(out, "<p><a href=\"");
    wpk_markup_raw(out, path);
    wpk_markup_url(out, token);
    wpk_markup_raw(out, "\">Next page</a></p>\n");
}

/* ---- pages without data */

void wpk_page_sign_in(struct wpk_buf *out, const char *problem)
{
    const struct wpk_page page = {.title = "Sign in", .here = ""};
    wpk_page_begin(out, &page);
    wpk_markup_raw(out, "<h1>Sign in</h1>\n");
    if (problem[0] != '\0') {
        wpk_markup(out, "<p class=\"note\" role=\"alert\">%s</p>\n", problem);
    }
    wpk_markup_raw(
        out, "<form method=\"post\" action=\"sign-in\">\n<p><label>Token <input type=\"password\" "
             "name=\"token\" size=\"48\" required autocomplete=\"off\"></label>\n"
             "<button>Sign in</button></p>\n</form>\n"
             "<p>The token becomes a cookie of 12 hours, which only reads. <code>wpkctl token "
             "create --roles read</code> prints a token; on the machine of wpkd, <code>wpkctl "
             "dashboard</code> needs none.</p>\n<p><a href=\"./\">Go on</a> if this browser has "
             "signed in before.</p>\n");
    wpk_page_end(out);
}

void wpk_page_problem(struct wpk_buf *out, int status, const char *text)
{
    const struct wpk_page page = {.title = "Problem", .here = ""};
    wpk_page_begin(out, &page);
    wpk_markup(out, "<h1>%d</h1>\n<p class=\"note\" role=\"alert\">%s</p>\n", status, text);
    wpk_page_end(out);
}
