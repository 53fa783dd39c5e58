/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that knows NVRTC. This file declares NVRTC's functions as
 * nvrtc.h does. */
#include "target/gpu/nvrtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A driver runs what is older than itself: 12 goes before 13. */
static const char *const libraries[] = {"libnvrtc.so.12", "libnvrtc.so.13"};
#define LIBRARIES "libnvrtc.so.12 or .13"
#define LIBRARY_COUNT (sizeof(libraries) / sizeof(libraries[0]))

#define PATH_SIZE 4096
/* Closed, the library would leave memory of its C++ runtime behind. */
#define OPEN_FLAGS (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)

typedef int result; /* of a call; 0: it succeeded */
typedef struct program *program;

/* name, result, parameters: of the function nvrtcNAME */
#define CALL_LIST(X)                                                                               \
    X(Version, result, (int *, int *))                                                             \
    X(GetNumSupportedArchs, result, (int *))                                                       \
    X(GetSupportedArchs, result, (int *))                                                          \
    X(CreateProgram, result,                                                                       \
      (program *, const char *, const char *, int, const char *const *, const char *const *))      \
    X(DestroyProgram, result, (program *))                                                         \
    X(CompileProgram, result, (program, int, const char *const *))                                 \
    X(GetPTXSize, result, (program, size_t *))                                                     \
    X(GetPTX, result, (program, char *))                                                           \
    X(GetCUBINSize, result, (program, size_t *))                                                   \
    X(GetCUBIN, result, (program, char *))                                                         \
    X(GetProgramLogSize, result, (program, size_t *))                                              \
    X(GetProgramLog, result, (program, char *))

#define CALL_ENUM(name, type, parameters) CALL_##name,
enum call { CALL_LIST(CALL_ENUM) CALL_COUNT };

#define CALL_TYPE(name, type, parameters) typedef type(*call_##name) parameters;
CALL_LIST(CALL_TYPE)

#define CALL_NAME(name, type, parameters) "nvrtc" #name,
static const char *const names[] = {CALL_LIST(CALL_NAME)};

_Static_assert(CALL_COUNT == WPK_CUDA_NVRTC_CALLS_MAX, "one pointer each");

#define CALL(nvrtc, name) ((call_##name)(nvrtc)->call[CALL_##name])

/* ---- opening */

static void *open_in(const char *directory, const char *name)
{
    char path[PATH_SIZE];
    int size = snprintf(path, sizeof(path), "%s/%s", directory, name);
    return size < PATH_SIZE ? dlopen(path, OPEN_FLAGS) : NULL;
}

static const char *set_toolkit;

void wpk_cuda_set_toolkit(const char *directory)
{
    set_toolkit = directory;
}

const char *wpk_cuda_toolkit(void)
{
    return set_toolkit;
}

/* Open a library in one of the toolkit's folders; *directory is the one. */
static void *open_in_toolkit(const char *toolkit, const char *name, const char **directory)
{
    static const char *const folders[] = {"lib64", "lib"};
    static char path[PATH_SIZE];
    void *library = NULL;
    *directory = path;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && library == NULL; i++) {
        snprintf(path, sizeof(path), "%s/%s", toolkit, folders[i]);
        library = open_in(path, name);
    }
    return library;
}

/* Open a library where NVRTC is known to lie, or by dlopen's own search. */
static void *open_anywhere(const char *name, const char **directory)
{
    static const char *const directories[] = {WPK_NVRTC_DIRECTORY, "/usr/local/cuda/lib64"};
    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
        void *library = open_in(directories[i], name);
        if (library != NULL) {
            *directory = directories[i];
            return library;
        }
    }
    return dlopen(name, OPEN_FLAGS);
}

/* Returns the library; *directory is where it lies, NULL if dlopen found it. */
static void *open_library(const char **directory)
{
    const char *asked = *directory;
    const char *toolkit = wpk_cuda_toolkit();
    void *library = NULL;
    for (size_t i = 0; i < LIBRARY_COUNT && library == NULL; i++) {
        library = asked != NULL     ? open_in(asked, libraries[i])
                  : toolkit != NULL ? open_in_toolkit(toolkit, libraries[i], directory)
                                    : open_anywhere(libraries[i], directory);
    }
    return library;
}

wpk_err wpk_cuda_nvrtc_open(struct wpk_cuda_nvrtc *nvrtc, const char *directory,
                            struct wpk_diag *diag)
{
    int major = 0, minor = 0;
    *nvrtc = (struct wpk_cuda_nvrtc){.library = open_library(&directory)};
    if (nvrtc->library == NULL) {
        return wpk_fail(diag, WPK_ENOENT, "no " LIBRARIES "%s%s: run make setup-gpu",
                        directory == NULL ? "" : " in ", directory == NULL ? "" : directory);
    }
    for (int i = 0; i < CALL_COUNT; i++) {
        void *symbol = dlsym(nvrtc->library, names[i]);
        if (symbol == NULL) {
            wpk_diag_set(diag, "NVRTC has no function %s", names[i]);
            wpk_cuda_nvrtc_close(nvrtc);
            return WPK_EUNSUPPORTED;
        }
        memcpy(&nvrtc->call[i], &symbol, sizeof(symbol));
    }
    if (CALL(nvrtc, Version)(&major, &minor) != 0) {
        wpk_diag_set(diag, "NVRTC does not say its version");
        wpk_cuda_nvrtc_close(nvrtc);
        return WPK_EUNSUPPORTED;
    }
    snprintf(nvrtc->version, sizeof(nvrtc->version), "nvrtc-%d.%d", major, minor);
    /* The library opens its second part by name, and finds it if it is there already. NVRTC's
     * own search in its directory fails where dlopen is another one's, as under
     * AddressSanitizer. */
    char name[64];
    snprintf(name, sizeof(name), "libnvrtc-builtins.so.%d.%d", major, minor);
    nvrtc->builtins = directory == NULL ? NULL : open_in(directory, name);
    return WPK_OK;
}

void wpk_cuda_nvrtc_close(struct wpk_cuda_nvrtc *nvrtc)
{
    if (nvrtc->builtins != NULL) {
        dlclose(nvrtc->builtins);
    }
    if (nvrtc->library != NULL) {
        dlclose(nvrtc->library);
    }
    *nvrtc = (struct wpk_cuda_nvrtc){0};
}

/* ---- compiling */

bool wpk_cuda_nvrtc_knows(const struct wpk_cuda_nvrtc *nvrtc, const char *architecture)
{
    int count = 0, all[64], number = 0;
    char again[16];
    if (sscanf(architecture, "sm_%3d", &number) != 1) {
        return false;
    }
    snprintf(again, sizeof(again), "sm_%d", number);
    if (strcmp(again, architecture) != 0 || CALL(nvrtc, GetNumSupportedArchs)(&count) != 0 ||
        count > (int)(sizeof(all) / sizeof(all[0])) || CALL(nvrtc, GetSupportedArchs)(all) != 0) {
        return false;
    }
    while (count > 0 && all[count - 1] != number) {
        count--;
    }
    return count > 0;
}

/* Append what one pair of calls gives, but for `left_out` bytes at its end. */
static wpk_err take(program module, call_GetPTXSize find_size, call_GetPTX get, size_t left_out,
                    struct wpk_buf *out)
{
    size_t size = 0;
    if (find_size(module, &size) != 0 || size == 0) {
        return WPK_EUNSUPPORTED;
    }
    char *bytes = wpk_buf_reserve(out, size);
    if (bytes == NULL) {
        return wpk_buf_status(out);
    }
    if (get(module, bytes) != 0) {
        return WPK_EUNSUPPORTED;
    }
    wpk_buf_commit(out, size - left_out);
    return WPK_OK;
}

wpk_err wpk_cuda_nvrtc_compile(const struct wpk_cuda_nvrtc *nvrtc, const char *text,
                               const char *architecture, bool strict, struct wpk_buf *cubin,
                               struct wpk_buf *ptx, struct wpk_diag *diag)
{
    char option[64];
    const char *options[] = {option, strict ? "--fmad=false" : "--fmad=true"};
    program module = NULL;
    if (!wpk_cuda_nvrtc_knows(nvrtc, architecture)) {
        return wpk_fail(diag, WPK_EINVAL, "%s knows no architecture '%.24s'", nvrtc->version,
                        architecture);
    }
    snprintf(option, sizeof(option), "--gpu-architecture=%s_%s", cubin != NULL ? "sm" : "compute",
             architecture + 3);
    if (CALL(nvrtc, CreateProgram)(&module, text, "kernel.cu", 0, NULL, NULL) != 0) {
        return WPK_ENOMEM;
    }
    wpk_err err = WPK_OK;
    if (CALL(nvrtc, CompileProgram)(module, 2, options) != 0) {
        /* The first message of the compiler: a line of its log. */
        size_t size = 0;
        bool known = CALL(nvrtc, GetProgramLogSize)(module, &size) == 0 && size > 1;
        char *log = known ? calloc(1, size) : NULL;
        if (log == NULL || CALL(nvrtc, GetProgramLog)(module, log) != 0) {
            wpk_diag_set(diag, "%s refuses the kernel", nvrtc->version);
        } else {
            wpk_diag_set(diag, "%s: %.*s", nvrtc->version, (int)strcspn(log, "\n"), log);
        }
        free(log);
        err = WPK_EUNSUPPORTED;
    } else {
        /* The text without its NUL. */
        err = take(module, CALL(nvrtc, GetPTXSize), CALL(nvrtc, GetPTX), 1, ptx);
    }
    if (err == WPK_OK && cubin != NULL) {
        err = take(module, CALL(nvrtc, GetCUBINSize), CALL(nvrtc, GetCUBIN), 0, cubin);
    }
    CALL(nvrtc, DestroyProgram)(&module);
    return err;
}
