/* SPDX-License-Identifier: Apache-2.0 */
/* The table of strategy classes, and what their options may be. */
#include "schema/job.h"
#include "search/strategy/strategies.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLASS(name) &wpk_strategy_##name,
static const struct wpk_strategy_class *const classes[] = {WPK_STRATEGY_LIST(CLASS)};

enum { CLASSES = sizeof(classes) / sizeof(classes[0]) };

const struct wpk_strategy_class *wpk_strategy_at(int i)
{
    return i < CLASSES ? classes[i] : NULL;
}

const struct wpk_strategy_class *wpk_strategy_find(const char *name)
{
    for (int i = 0; i < CLASSES; i++) {
        if (strcmp(classes[i]->name, name) == 0) {
            return classes[i];
        }
    }
    return NULL;
}

const char *wpk_strategy_names(void)
{
#define NAME(name) ", " #name
    static const char names[] = WPK_STRATEGY_LIST(NAME);
    return names + sizeof(", ") - 1;
}

/* ---- options */

/* The number of the option, or -1.   shape  name: "rl.learning_rate", of `length` characters */
static int find_option(const struct wpk_strategy_class *class, const char *name, size_t length)
{
    size_t prefix = strlen(class->name);
    if (length <= prefix || strncmp(name, class->name, prefix) != 0 || name[prefix] != '.') {
        return -1;
    }
    for (int i = 0; i < class->option_count; i++) {
        if (strlen(class->options[i].name) == length - prefix - 1 &&
            strncmp(class->options[i].name, name + prefix + 1, length - prefix - 1) == 0) {
            return i;
        }
    }
    return -1;
}

static wpk_err read_option(const struct wpk_strategy_class *class, const char *name, size_t length,
                           const char *value, size_t size, double *out, struct wpk_diag *diag)
{
    char number[64], *end = number, known[WPK_DIAG_TEXT_MAX / 2] = "";
    int i = find_option(class, name, length);
    for (int k = 0; k < class->option_count; k++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof(known) - used, "%s%s.%s", k > 0 ? ", " : "", class->name,
                 class->options[k].name);
    }
    if (i < 0) {
        return wpk_fail(diag, WPK_ENOENT, "strategy %s has no option %.*s; it has %s", class->name,
                        (int)length, name, class->option_count == 0 ? "none" : known);
    }
    const struct wpk_strategy_option *option = &class->options[i];
    snprintf(number, sizeof(number), "%.*s", (int)size, value);
    double read = strtod(number, &end);
    if (end == number || *end != '\0' || !isfinite(read)) {
        return wpk_fail(diag, WPK_EPARSE, "%.*s is \"%s\", but must be a number", (int)length, name,
                        number);
    }
    if (read < option->least || read > option->most || (option->whole && read != floor(read))) {
        return wpk_fail(diag, WPK_ERANGE, "%.*s is %s, but must be %s from %g to %g", (int)length,
                        name, number, option->whole ? "an integer" : "a number", option->least,
                        option->most);
    }
    out[i] = read;
    return WPK_OK;
}

wpk_err wpk_strategy_check_option(const struct wpk_strategy_class *class, const char *name,
                                  const char *value, struct wpk_diag *diag)
{
    double ignored[WPK_OPTIONS_MAX];
    return read_option(class, name, strlen(name), value, strlen(value), ignored, diag);
}

wpk_err wpk_strategy_check_job(const struct wpk_job *job, struct wpk_diag *diag)
{
    char name[WPK_JOB_GENE_MAX], value[WPK_JOB_GENE_MAX];
    const struct wpk_strategy_class *class = wpk_strategy_find(job->strategy);
    wpk_err err = WPK_OK;
    for (int i = 0; err == WPK_OK && wpk_job_option_at(job->options, i, name, value); i++) {
        err = wpk_strategy_check_option(class, name, value, diag);
        if (err != WPK_OK) {
            wpk_job_locate_search(job, "options", name, diag);
        }
    }
    return err;
}

wpk_err wpk_strategy_read_options(const struct wpk_strategy_class *kind, const char *text,
                                  double *out)
{
    wpk_err err = WPK_OK;
    WPK_ASSERT(kind->option_count <= WPK_OPTIONS_MAX);
    for (int i = 0; i < kind->option_count; i++) {
        out[i] = kind->options[i].initial;
    }
    for (const char *at = text == NULL ? "" : text; err == WPK_OK && *at != '\0';) {
        size_t length = strcspn(at, "="), end = strcspn(at, ";");
        if (length >= end) {
            return WPK_EPARSE;
        }
        err = read_option(kind, at, length, at + length + 1, end - length - 1, out, NULL);
        at += end + (at[end] == ';');
    }
    return err;
}
