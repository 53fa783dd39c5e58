/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session.h"

#include "common/fs.h"
#include "schema/fields.h"

#include <string.h>

#define FILE_SIZE_MAX ((size_t)64 << 10)

/* The values of the file; "": not set. */
struct wpk_server_file {
    char server[WPK_HTTP_URL_MAX];
    char token_file[WPK_SERVER_ACCESS_PATH_MAX];
    char ca[WPK_SERVER_ACCESS_PATH_MAX];
};

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static const struct wpk_field file_fields[] = {
    {WPK_FIELD(COPY, "server", server_file, server, WPK_OPTIONAL)},
    {WPK_FIELD(COPY, "token_file", server_file, token_file, WPK_OPTIONAL)},
    {WPK_FIELD(COPY, "ca", server_file, ca, WPK_OPTIONAL)},
    {WPK_FIELD_END},
};

/* None is no error: hardly anybody has one. */
static wpk_err read_file(const struct wpk_command_context *context, struct wpk_server_file *out,
                         struct wpk_diag *diag)
{
    struct wpk_buf path = {.size_max = WPK_SERVER_ACCESS_PATH_MAX};
    struct wpk_buf text = {0};

    /* A relative one is to be ignored, as its specification asks. */
    if (is_set(context->xdg_config_home) && context->xdg_config_home[0] == '/') {
        wpk_buf_append_text(&path, context->xdg_config_home);
    } else if (is_set(context->home)) {
        wpk_buf_printf(&path, "%s/.config", context->home);
    } else {
        return WPK_OK;
    }
    wpk_buf_append_text(&path, "/woodpecker/wpkctl.json");
    wpk_err err = wpk_buf_status(&path);
    err = err == WPK_OK ? wpk_fs_read(wpk_buf_text(&path), FILE_SIZE_MAX, &text, diag) : err;
    if (err == WPK_OK) {
        const struct wpk_fields_text from = {
            .text = wpk_buf_text(&text), .size = text.size, .size_max = FILE_SIZE_MAX};
        err = wpk_fields_decode(&from, file_fields, out, diag);
        err = wpk_diag_in_file(diag, err, wpk_buf_text(&path));
    } else if (err == WPK_ENOENT) {
        *diag = (struct wpk_diag){0};
        err = WPK_OK;
    }
    wpk_buf_fini(&text);
    wpk_buf_fini(&path);
    return err;
}

/* One line of visible characters: it becomes part of a header. */
static wpk_err read_token(const char *path, char out[WPK_HTTP_TOKEN_MAX + 1], struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    wpk_err err = wpk_fs_read(path, WPK_HTTP_TOKEN_MAX + 1, &text, diag);

    if (err == WPK_OK && text.size > 0 && text.data[text.size - 1] == '\n') {
        wpk_buf_truncate(&text, text.size - 1);
    }
    bool plain = text.size > 0 && text.size <= WPK_HTTP_TOKEN_MAX;
    for (size_t i = 0; i < text.size; i++) {
        plain = plain && text.data[i] > ' ' && text.data[i] < 0x7f;
    }
    if (err == WPK_ENOENT) {
        err = WPK_EINVAL; /* not found means the job or the kernel, to scripts */
    } else if (err == WPK_ERANGE || (err == WPK_OK && !plain)) {
        err = wpk_fail(diag, WPK_EINVAL, "%s holds no token: one line of visible characters", path);
    }
    if (err == WPK_OK) {
        memcpy(out, text.data, text.size + 1);
    }
    wpk_buf_fini(&text);
    return err;
}

static wpk_err copy(const char *what, const char *from, char *to, size_t size,
                    struct wpk_diag *diag)
{
    if (!is_set(from)) {
        to[0] = '\0';
        return WPK_OK;
    }
    if (strlen(from) >= size) {
        return wpk_fail(diag, WPK_EINVAL, "the %s is too long; give a shorter one", what);
    }
    memcpy(to, from, strlen(from) + 1);
    return WPK_OK;
}

wpk_err wpk_server_access_find(const struct wpk_command_context *context,
                               const struct wpk_server_access_given *given,
                               struct wpk_server_access *out, struct wpk_diag *diag)
{
    struct wpk_server_file file = {0};
    struct wpk_diag ignored = {0};

    *out = (struct wpk_server_access){.insecure = given->insecure};
    wpk_err err = read_file(context, &file, diag != NULL ? diag : &ignored);
    if (err != WPK_OK) {
        return err;
    }
    const char *server = is_set(given->server)  ? given->server
                         : is_set(context->url) ? context->url
                                                : file.server;
    bool files_own = strcmp(server, file.server) == 0;
    const char *token_file = is_set(given->token_file)     ? given->token_file
                             : is_set(context->token_file) ? context->token_file
                             : files_own                   ? file.token_file
                                                           : "";
    const char *ca = is_set(given->ca)     ? given->ca
                     : is_set(context->ca) ? context->ca
                     : files_own           ? file.ca
                                           : "";
    err = copy("server's URL", server, out->server, sizeof(out->server), diag);
    err = err == WPK_OK ? copy("CA's path", ca, out->ca, sizeof(out->ca), diag) : err;
    if (err == WPK_OK && is_set(token_file)) {
        err = read_token(token_file, out->token, diag);
    }
    return err;
}
