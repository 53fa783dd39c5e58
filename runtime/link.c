/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/link.h"

#include "common/fs.h"

#include <stdio.h>

/* Made when wpk is built, from stub.c and kernel.map: a builder then needs no path to them. */
extern const unsigned char wpk_link_stub[];
extern const size_t wpk_link_stub_size;
extern const unsigned char wpk_link_map[];
extern const size_t wpk_link_map_size;

/* libm and libc by their file names: the -dev packages' scripts need not be there. */
#define LINK_COMMAND(...)                                                                          \
    {                                                                                              \
        "ld", "-shared", "--no-undefined", "-z", "relro", "-z", "now", "-z", "noexecstack",        \
            "--hash-style=gnu", "--build-id=none", "--gc-sections", "--version-script=kernel.map", \
            "-o", "kernel.so", "stub.o", __VA_ARGS__, "-b", "binary", "manifest", "-b",            \
            "elf64-x86-64", "--as-needed", "-l:libm.so.6", "-l:libc.so.6", NULL                    \
    }

static wpk_err write_part(const char *directory, const char *name, const void *data, size_t size,
                          struct wpk_diag *diag)
{
    char path[4096];
    int length = snprintf(path, sizeof(path), "%s/%s", directory, name);

    if (length < 0 || (size_t)length >= sizeof(path)) {
        wpk_diag_set(diag, "the path of '%s' is too long", name);
        return WPK_ERANGE;
    }
    return wpk_fs_write(path, data, size, 0644, diag);
}

wpk_err wpk_link_write_parts(const char *directory, struct wpk_diag *diag)
{
    wpk_err err = write_part(directory, "stub.o", wpk_link_stub, wpk_link_stub_size, diag);

    if (err == WPK_OK) {
        err = write_part(directory, "kernel.map", wpk_link_map, wpk_link_map_size, diag);
    }
    return err;
}

const char *const *wpk_link_command(bool prepare)
{
    static const char *const with_prepare[] = LINK_COMMAND("main.o", "prepare.o");
    static const char *const without_prepare[] = LINK_COMMAND("main.o");

    return prepare ? with_prepare : without_prepare;
}
