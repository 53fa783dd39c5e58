/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/link.h"

#include "common/fs.h"

#include <stdio.h>

/* Made when wpk is built, from stub.c, stub_image.c and kernel.map: a builder then needs no path to
 * them. */
extern const unsigned char wpk_link_stub[];
extern const size_t wpk_link_stub_size;
extern const unsigned char wpk_link_stub_image[];
extern const size_t wpk_link_stub_image_size;
extern const unsigned char wpk_link_map[];
extern const size_t wpk_link_map_size;
extern const unsigned char wpk_link_tvm_ffi[];
extern const size_t wpk_link_tvm_ffi_size;

/* libm and libc by their file names: the -dev packages' scripts need not be there. */
#define LINK_COMMAND(...)                                                                          \
    {                                                                                              \
        "ld", "-shared", "--no-undefined", "-z", "relro", "-z", "now", "-z", "noexecstack",        \
            "--hash-style=gnu", "--build-id=none", "--gc-sections", "--version-script=kernel.map", \
            "-o", "kernel.so", __VA_ARGS__, NULL                                                   \
    }
#define OBJECTS(...)                                                                               \
    "stub.o", __VA_ARGS__, "-b", "binary", "manifest", "-b", "default", "--as-needed",             \
        "-l:libm.so.6", "-l:libc.so.6"

static wpk_err write_part(const char *directory, const char *name, const void *data, size_t size,
                          struct wpk_diag *diag)
{
    char path[4096];
    int length = snprintf(path, sizeof(path), "%s/%s", directory, name);

    if (length < 0 || (size_t)length >= sizeof(path)) {
        return wpk_fail(diag, WPK_ERANGE, "the path of '%s' is too long", name);
    }
    return wpk_fs_write(path, data, size, 0644, diag);
}

wpk_err wpk_link_write_parts(const char *directory, struct wpk_diag *diag)
{
    wpk_err err = write_part(directory, "stub.o", wpk_link_stub, wpk_link_stub_size, diag);

    if (err == WPK_OK) {
        err = write_part(directory, "stub_image.o", wpk_link_stub_image, wpk_link_stub_image_size,
                         diag);
    }
    return err == WPK_OK
               ? write_part(directory, "kernel.map", wpk_link_map, wpk_link_map_size, diag)
               : err;
}

wpk_err wpk_link_write_tvm_ffi(const char *object, struct wpk_diag *diag)
{
    return wpk_fs_write(object, wpk_link_tvm_ffi, wpk_link_tvm_ffi_size, 0644, diag);
}

const char *const *wpk_link_parts(enum wpk_link_kind kind)
{
    static const char *const objects[] = {"stub.o", "kernel.map", NULL};
    static const char *const images[] = {"stub_image.o", "kernel.map", NULL};

    return kind == WPK_LINK_IMAGES ? images : objects;
}

const char *const *wpk_link_command(enum wpk_link_kind kind)
{
    static const char *const with_prepare[] = LINK_COMMAND(OBJECTS("main.o", "prepare.o"));
    static const char *const without_prepare[] = LINK_COMMAND(OBJECTS("main.o"));
    static const char *const images[] =
        LINK_COMMAND("stub_image.o", "-b", "binary", "manifest", "main.image", "prepare.image");
    static const char *const *const commands[WPK_LINK_KINDS] = {
        [WPK_LINK_MAIN] = without_prepare,
        [WPK_LINK_WITH_PREPARE] = with_prepare,
        [WPK_LINK_IMAGES] = images,
    };

    WPK_ASSERT((int)kind >= 0 && kind < WPK_LINK_KINDS);
    return commands[kind];
}
