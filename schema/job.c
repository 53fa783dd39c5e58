/* SPDX-License-Identifier: Apache-2.0 */
/* A job in memory; job_json.c is its JSON. */
#include "schema/job.h"

#include "common/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const layouts_names[] = {WPK_LAYOUTS_LIST(WPK_LIST_TEXT)};

WPK_LIST_NAME(wpk_layouts_name, enum wpk_layouts, layouts_names)
WPK_LIST_PARSE(wpk_layouts_parse, enum wpk_layouts, layouts_names)

void wpk_job_op_fini(struct wpk_job_op *op)
{
    free(op->notation);
    free(op->shorthand);
    free(op->tensors);
    *op = (struct wpk_job_op){0};
}

void wpk_job_init(struct wpk_job *job)
{
    *job = (struct wpk_job){.kind = "cpu",
                            .threads = 1,
                            .strategy = "auto",
                            .seed = 1,
                            .candidates = 200,
                            .seconds = 600};
}

void wpk_job_fini(struct wpk_job *job)
{
    if (job == NULL) {
        return;
    }
    for (int i = 0; i < job->op_count; i++) {
        wpk_job_op_fini(&job->ops[i]);
    }
    free(job->ops);
    free(job->labels);
    free(job->pins);
    free(job->prior_text);
    free(job->source);
    *job = (struct wpk_job){0};
}

wpk_err wpk_job_pin(struct wpk_job *job, const char *gene, const char *value)
{
    int at = 0;

    if (gene[0] == '\0' || strlen(gene) >= WPK_JOB_GENE_MAX || strlen(value) >= WPK_JOB_GENE_MAX) {
        return WPK_ERANGE;
    }
    while (at < job->pin_count && strcmp(job->pins[at].gene, gene) != 0) {
        at++;
    }
    if (at == job->pin_count) {
        if (job->pin_count == WPK_JOB_PINS_MAX) {
            return WPK_ENOSPC;
        }
        struct wpk_job_pin *pins = realloc(job->pins, (size_t)(at + 1) * sizeof(*pins));
        if (pins == NULL) {
            return WPK_ENOMEM;
        }
        job->pins = pins;
        job->pin_count++;
    }
    snprintf(job->pins[at].gene, WPK_JOB_GENE_MAX, "%s", gene);
    snprintf(job->pins[at].value, WPK_JOB_GENE_MAX, "%s", value);
    return WPK_OK;
}

wpk_err wpk_job_set_until(struct wpk_job *job, const char *until, struct wpk_diag *diag)
{
    static const struct {
        const char *name;
        double most;
    } kinds[] = {{"speedup", 1000}, {"of_peak", 100}};
    char *end = NULL;
    if (strcmp(until, "converged") == 0) {
        snprintf(job->until, sizeof(job->until), "%s", until);
        return WPK_OK;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t length = strlen(kinds[i].name);
        if (strncmp(until, kinds[i].name, length) != 0 || until[length] != '=') {
            continue;
        }
        double number = strtod(until + length + 1, &end);
        if (end == until + length + 1 || *end != '\0' || !(number > 0) || number > kinds[i].most) {
            return wpk_fail(diag, WPK_EINVAL, "%s needs a number above 0, up to %g", kinds[i].name,
                            kinds[i].most);
        }
        snprintf(job->until, sizeof(job->until), "%s=%.17g", kinds[i].name, number);
        return WPK_OK;
    }
    return wpk_fail(diag, WPK_EINVAL, "\"%s\" is no end; there are converged, speedup and of_peak",
                    until);
}

bool wpk_job_option_at(const char *options, int i, char *name, char *value)
{
    for (; i > 0 && *options != '\0'; i--) {
        options += strcspn(options, ";");
        options += *options == ';';
    }
    size_t length = strcspn(options, "="), end = strcspn(options, ";");
    if (*options == '\0' || length > end || length >= WPK_JOB_GENE_MAX) {
        return false;
    }
    snprintf(name, WPK_JOB_GENE_MAX, "%.*s", (int)length, options);
    snprintf(value, WPK_JOB_GENE_MAX, "%.*s", (int)(end - length - 1), options + length + 1);
    return true;
}

wpk_err wpk_job_set_option(struct wpk_job *job, const char *name, const char *value)
{
    char list[WPK_JOB_OPTIONS_MAX], known[WPK_JOB_GENE_MAX], text[WPK_JOB_GENE_MAX], *end = NULL;
    double number = strtod(value, &end);
    size_t used = 0;
    bool put = false;
    if (name[0] == '\0' || strpbrk(name, "=;") != NULL || strlen(name) >= WPK_JOB_GENE_MAX) {
        return WPK_ERANGE;
    }
    if (end == value || *end != '\0') {
        return WPK_EPARSE;
    }
    list[0] = '\0';
    for (int i = 0;; i++) {
        bool more = wpk_job_option_at(job->options, i, known, text);
        int order = more ? strcmp(known, name) : 1;
        if (!put && order >= 0 && used < sizeof(list)) {
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s=%.17g",
                                     used > 0 ? ";" : "", name, number);
            put = true;
        }
        if (!more) {
            break;
        }
        if (order != 0 && used < sizeof(list)) {
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s=%s",
                                     used > 0 ? ";" : "", known, text);
        }
    }
    if (used >= sizeof(list)) {
        return WPK_ERANGE;
    }
    memcpy(job->options, list, sizeof(list));
    return WPK_OK;
}

/* Characters of JSON from the opening quote at `literal` to the decoded character at line and
 * column; a string of the file cannot contain a newline itself, so this is a distance in a line. */
static int distance_in_string(const char *literal, const char *end, int line, int column)
{
    const char *p = literal + 1;
    int distance = 1;
    int at_line = 1;
    int at_column = 1;

    while (p < end - 1 && (at_line < line || (at_line == line && at_column < column))) {
        bool newline = p[0] == '\\' && p[1] == 'n';
        int width = p[0] != '\\' ? 1 : p[1] == 'u' ? 6 : 2;
        for (int i = 0; i < width && p < end - 1; i++) {
            /* Continuation bytes belong to the character before them. */
            do {
                p++;
            } while (p < end - 1 && ((unsigned char)*p & 0xc0) == 0x80);
            distance++;
        }
        at_line += newline;
        at_column = newline ? 1 : at_column + 1;
    }
    return distance;
}

static bool locate_member(const struct wpk_job *job, int op, const char *member,
                          struct wpk_json_place *place)
{
    char first[WPK_NAME_MAX + 16];
    const char *dot = strchr(member, '.');
    struct wpk_json_step steps[4] = {{.key = "ops"}, {.index = (size_t)op}, {.key = member}};

    if (dot == NULL) {
        return wpk_json_locate(job->source, job->source_size, steps, 3, place);
    }
    snprintf(first, sizeof(first), "%.*s", (int)(dot - member), member);
    steps[2].key = first;
    steps[3].key = dot + 1;
    return wpk_json_locate(job->source, job->source_size, steps, 4, place);
}

void wpk_job_locate(const struct wpk_job *job, int op, const char *member, struct wpk_diag *diag)
{
    struct wpk_json_place place;
    char inner[sizeof(diag->field)];

    WPK_ASSERT(op >= 0 && op < job->op_count);
    if (diag == NULL) {
        return;
    }
    memcpy(inner, diag->field, sizeof(inner));
    snprintf(diag->field, sizeof(diag->field), "ops[%d].%s%s%s", op, member,
             inner[0] != '\0' ? "." : "", inner);
    if (job->source == NULL) {
        return;
    }
    bool found = locate_member(job, op, member, &place);
    const char *value = job->source + place.offset;
    if (!found || diag->line < 1) {
        diag->line = place.line;
        diag->column = place.column;
    } else if (*value == '"') {
        diag->column =
            place.column + distance_in_string(value, value + place.size, diag->line, diag->column);
        diag->line = place.line;
    } else {
        diag->column = diag->line == 1 ? place.column + diag->column - 1 : diag->column;
        diag->line = place.line + diag->line - 1;
    }
}

void wpk_job_locate_search(const struct wpk_job *job, const char *member, const char *key,
                           struct wpk_diag *diag)
{
    const struct wpk_json_step steps[] = {{.key = "search"}, {.key = member}, {.key = key}};
    struct wpk_json_place place;

    if (diag == NULL) {
        return;
    }
    snprintf(diag->field, sizeof(diag->field), "search.%s%s%.60s", member, key != NULL ? "." : "",
             key != NULL ? key : "");
    if (job->source != NULL &&
        wpk_json_locate(job->source, job->source_size, steps, key != NULL ? 3 : 2, &place)) {
        diag->line = place.line;
        diag->column = place.column;
    }
}
