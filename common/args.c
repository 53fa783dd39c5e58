/* SPDX-License-Identifier: Apache-2.0 */
#include "common/args.h"

#include "common/format.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/suggest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool parse_u64(const char *text, uint64_t *out)
{
    char *end;

    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *out = value;
    return errno == 0 && *end == '\0';
}

static wpk_err store_int(const struct wpk_option *option, const char *value, struct wpk_diag *diag)
{
    bool negative = value[0] == '-';
    uint64_t size;

    if (!parse_u64(value + negative, &size)) {
        return wpk_fail(diag, WPK_EINVAL, "--%s takes an integer, not '%s'", option->name, value);
    }
    if (size > INT64_MAX || (negative ? -(int64_t)size : (int64_t)size) < option->min ||
        (negative ? -(int64_t)size : (int64_t)size) > option->max) {
        return wpk_fail(diag, WPK_ERANGE, "--%s must be between %" PRId64 " and %" PRId64,
                        option->name, option->min, option->max);
    }
    if (option->kind == WPK_OPTION_COUNT) {
        *(int *)option->out = (int)size;
    } else {
        *(int64_t *)option->out = negative ? -(int64_t)size : (int64_t)size;
    }
    return WPK_OK;
}

static wpk_err call(const struct wpk_option *option, const char *value, struct wpk_diag *diag)
{
    wpk_err err = option->call(option->out, value, diag);

    if (err != WPK_OK) {
        wpk_diag_set(diag, "--%s: '%s' is no value for it", option->name, value);
    }
    return err;
}

static wpk_err store(const struct wpk_option *option, const char *value, struct wpk_diag *diag)
{
    struct wpk_option_list *list = option->out;
    struct wpk_option_u64 *number = option->out;

    switch (option->kind) {
    case WPK_OPTION_FLAG:
        *(bool *)option->out = true;
        return WPK_OK;
    case WPK_OPTION_TEXT:
    case WPK_OPTION_OUTPUT:
        if (value[0] == '\0' && strcmp(option->argument, "DIR") == 0) {
            return wpk_fail(diag, WPK_EINVAL,
                            "--%s: '' is no directory; name one, or leave the option out",
                            option->name);
        }
        if (option->max > 0 && (value[0] == '\0' || strlen(value) > (size_t)option->max)) {
            return wpk_fail(diag, WPK_EINVAL, "--%s takes 1 to %" PRId64 " bytes", option->name,
                            option->max);
        }
        *(const char **)option->out = value;
        return WPK_OK;
    case WPK_OPTION_CALL:
        return call(option, value, diag);
    case WPK_OPTION_INT:
    case WPK_OPTION_COUNT:
        return store_int(option, value, diag);
    case WPK_OPTION_U64:
        if (!parse_u64(value, &number->value)) {
            return wpk_fail(diag, WPK_EINVAL, "--%s takes an integer from 0 to 2^64-1, not '%s'",
                            option->name, value);
        }
        number->given = true;
        return WPK_OK;
    case WPK_OPTION_LIST:
    case WPK_OPTION_OUTPUTS:
        if (list->count == WPK_ARGS_LIST_MAX) {
            return wpk_fail(diag, WPK_ERANGE, "--%s is given more than %d times; leave some out",
                            option->name, WPK_ARGS_LIST_MAX);
        }
        list->items[list->count++] = value;
        return WPK_OK;
    }
    wpk_assert_failed("every kind is handled", __FILE__, __LINE__);
}

/* The option that `word` names, and its value if that is in the same word. */
static const struct wpk_option *find_option(const struct wpk_option *options, const char *word,
                                            const char **value)
{
    const char *equals = strchr(word, '=');
    size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word);

    *value = equals != NULL ? equals + 1 : NULL;
    for (const struct wpk_option *option = options; option->name != NULL; option++) {
        if (word[1] == '-' && strlen(option->name) == length - 2 &&
            strncmp(option->name, word + 2, length - 2) == 0) {
            return option;
        }
        if (word[1] != '-' && option->letter == word[1] && word[2] == '\0') {
            *value = NULL;
            return option;
        }
    }
    return NULL;
}

static void complain(const struct wpk_option *options, const char *word, struct wpk_diag *diag)
{
    char bare[WPK_SUGGEST_SIZE];
    char near[WPK_SUGGEST_SIZE + 24] = "";
    const char *name = word + strspn(word, "-");

    snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(name, "="), name);
    struct wpk_suggest suggest = {.word = bare};
    for (const struct wpk_option *option = options; option->name != NULL; option++) {
        wpk_suggest_offer(&suggest, option->name);
    }
    wpk_suggest_offer(&suggest, "help");
    if (suggest.name[0] != '\0') {
        snprintf(near, sizeof(near), "; did you mean '--%s'?", suggest.name);
    }
    wpk_diag_set(diag, "there is no option '%s'%s", word,
                 near[0] != '\0' ? near : "; --help lists the options");
}

/* Take the option at argv[*at]; *at ends on the last word taken. */
static wpk_err take_option(const struct wpk_option *options, int argc, char **argv, int *at,
                           struct wpk_diag *diag)
{
    const char *word = argv[*at];
    const char *value;
    const struct wpk_option *option = find_option(options, word, &value);

    if (option == NULL) {
        complain(options, word, diag);
        return WPK_EINVAL;
    }
    if (option->kind == WPK_OPTION_FLAG && value != NULL) {
        return wpk_fail(diag, WPK_EINVAL, "--%s takes no value; leave it out", option->name);
    }
    if (option->kind != WPK_OPTION_FLAG && value == NULL) {
        if (*at + 1 == argc) {
            return wpk_fail(diag, WPK_EINVAL, "--%s needs a value: %s", option->name,
                            option->argument);
        }
        value = argv[++*at];
    }
    return store(option, value, diag);
}

wpk_err wpk_args_parse(const struct wpk_option *options, int argc, char **argv,
                       struct wpk_args *out, struct wpk_diag *diag)
{
    struct wpk_args args = {0};
    bool options_ended = false;

    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        wpk_err err = WPK_OK;
        if (!options_ended && strcmp(word, "--") == 0) {
            options_ended = true;
        } else if (!options_ended && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            *out = (struct wpk_args){.help = true};
            return WPK_OK;
        } else if (!options_ended && word[0] == '-' && word[1] != '\0') {
            err = take_option(options, argc, argv, &i, diag);
        } else if (args.operand_count < WPK_ARGS_OPERANDS_MAX) {
            args.operands[args.operand_count++] = word;
        } else {
            err = wpk_fail(diag, WPK_EINVAL,
                           "'%s' is one operand too many; --help says which there are", word);
        }
        if (err != WPK_OK) {
            return err;
        }
    }
    *out = args;
    return WPK_OK;
}

wpk_err wpk_args_take_log_level(void *out, const char *value, struct wpk_diag *diag)
{
    if (wpk_log_level_parse(value, out) != WPK_OK) {
        return wpk_fail(diag, WPK_EINVAL,
                        "there is no log level %s; there are debug, info, warn and error", value);
    }
    return WPK_OK;
}

wpk_err wpk_args_take_log_format(void *out, const char *value, struct wpk_diag *diag)
{
    if (wpk_log_format_parse(value, out) != WPK_OK) {
        return wpk_fail(diag, WPK_EINVAL,
                        "there is no log format %s; there are text, json and journal", value);
    }
    return WPK_OK;
}

const char *wpk_args_value(const char *name, int argc, char **argv)
{
    size_t size = strlen(name);
    const char *value = NULL;

    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool is_named = wpk_begins(argv[i], "--") && strncmp(argv[i] + 2, name, size) == 0;
        if (is_named && argv[i][2 + size] == '=') {
            value = argv[i] + 2 + size + 1;
        } else if (is_named && argv[i][2 + size] == '\0' && i + 1 < argc) {
            value = argv[++i];
        }
    }
    return value;
}

/* True if the name in a file is the option's. */
static bool is_in_file(const struct wpk_option *option, const char *name)
{
    size_t i = 0;

    while (option->name[i] != '\0' && name[i] == (option->name[i] == '-' ? '_' : option->name[i])) {
        i++;
    }
    return option->name[i] == '\0' && name[i] == '\0';
}

wpk_err wpk_args_set(const struct wpk_option *options, const char *name, const char *value,
                     struct wpk_diag *diag)
{
    for (const struct wpk_option *option = options; option->name != NULL; option++) {
        if (is_in_file(option, name) && (value == NULL) != (option->kind == WPK_OPTION_FLAG)) {
            return wpk_fail(diag, WPK_EINVAL,
                            value == NULL ? "a value is expected" : "true or false is expected");
        }
        if (is_in_file(option, name)) {
            return store(option, value, diag);
        }
    }
    return wpk_fail(diag, WPK_ENOENT, "there is no such option");
}

/* ---- outputs */

/* Check that `path` is not the file of a word: "FILE", or "NAME=FILE"; names may contain "=". */
static wpk_err differs(const char *path, const char *word, struct wpk_diag *diag)
{
    wpk_err err = wpk_output_path_differs(path, word, diag);

    for (const char *at = strchr(word, '='); err == WPK_OK && at != NULL;
         at = strchr(at + 1, '=')) {
        err = wpk_output_path_differs(path, at + 1, diag);
    }
    return err;
}

static wpk_err differs_from_option(const char *path, const struct wpk_option *option,
                                   struct wpk_diag *diag)
{
    const struct wpk_option_list *list = option->out;
    const char *const *text = option->out;
    wpk_err err = WPK_OK;

    if (option->kind == WPK_OPTION_TEXT && *text != NULL) {
        err = differs(path, *text, diag);
    }
    for (int i = 0; option->kind == WPK_OPTION_LIST && err == WPK_OK && i < list->count; i++) {
        err = differs(path, list->items[i], diag);
    }
    return err;
}

wpk_err wpk_args_check_output(const struct wpk_option *options, const struct wpk_args *args,
                              const char *path, struct wpk_diag *diag)
{
    wpk_err err = wpk_output_path_check(path, diag);

    for (int i = 0; err == WPK_OK && i < args->operand_count; i++) {
        err = wpk_output_path_differs(path, args->operands[i], diag);
    }
    for (const struct wpk_option *o = options; err == WPK_OK && o->name != NULL; o++) {
        err = differs_from_option(path, o, diag);
    }
    return err;
}

wpk_err wpk_args_check_outputs(const struct wpk_option *options, const struct wpk_args *args,
                               struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    for (const struct wpk_option *o = options; err == WPK_OK && o->name != NULL; o++) {
        const struct wpk_option_list *list = o->out;
        const char *const *text = o->out;
        if (o->kind == WPK_OPTION_OUTPUT && *text != NULL) {
            err = wpk_args_check_output(options, args, *text, diag);
        }
        for (int i = 0; o->kind == WPK_OPTION_OUTPUTS && err == WPK_OK && i < list->count; i++) {
            const char *equals = strrchr(list->items[i], '=');
            err = wpk_args_check_output(options, args, equals != NULL ? equals + 1 : list->items[i],
                                        diag);
        }
    }
    return err;
}

#define HELP_INDENT 30

static void print_row(const char *left, const char *help, FILE *out)
{
    struct wpk_buf text = {0};
    int room = HELP_INDENT - 4;

    wpk_format_wrap(help, HELP_INDENT, WPK_HELP_WIDTH, &text);
    if ((int)strlen(left) > room) {
        fprintf(out, "  %s\n%*s%s", left, HELP_INDENT, "", wpk_buf_text(&text));
    } else {
        fprintf(out, "  %-*s  %s", room, left, wpk_buf_text(&text));
    }
    wpk_buf_fini(&text);
}

void wpk_args_print(const struct wpk_option *options, FILE *out)
{
    for (const struct wpk_option *option = options; option->name != NULL; option++) {
        char left[64];
        char letter[8] = "";
        if (option->help == NULL) {
            continue;
        }
        if (option->letter != 0) {
            snprintf(letter, sizeof(letter), "-%c, ", option->letter);
        }
        snprintf(left, sizeof(left), "%s--%s%s%s", letter, option->name,
                 option->argument != NULL ? " " : "",
                 option->argument != NULL ? option->argument : "");
        print_row(left, option->help, out);
    }
    print_row("-h, --help", "this text", out);
}
