/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/onnxruntime/twin.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Smaller constants have to lie in the graph itself, so that shapes can be inferred from them: ONNX
 * Runtime refuses to have them outside. */
#define OUTSIDE_SIZE_MIN 128

#define PATH_SIZE 4096

struct wpk_constant_mapping {
    void *base;
    size_t size; /* bytes */
};

void wpk_constant_files_fini(struct wpk_constant_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        munmap(files->mappings[i].base, files->mappings[i].size);
    }
    free(files->mappings);
    *files = (struct wpk_constant_files){0};
}

/* Map `size` bytes of a file from `offset` on, and keep the mapping in `files`. NULL where that
 * fails, for which there may be many reasons: the caller copies. */
static void *map(struct wpk_constant_files *files, const char *path, size_t offset, size_t size)
{
    struct wpk_constant_mapping *grown =
        realloc(files->mappings, (files->count + 1) * sizeof(*files->mappings));
    if (grown == NULL) {
        return NULL;
    }
    files->mappings = grown;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    char *data = NULL;
    size_t before = offset % (size_t)sysconf(_SC_PAGESIZE);
    if (file >= 0 && fstat(file, &about) == 0 && (size_t)about.st_size >= size &&
        (size_t)about.st_size - size >= offset) {
        void *base = mmap(NULL, before + size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file,
                          (off_t)(offset - before));
        if (base != MAP_FAILED) {
            grown[files->count++] =
                (struct wpk_constant_mapping){.base = base, .size = before + size};
            data = (char *)base + before;
        }
    }
    if (file >= 0) {
        close(file);
    }
    return data;
}

/* The bytes of one element, or less for types of several elements a byte. */
static size_t element_size(const struct wpk_ort_type *type, size_t size)
{
    for (size_t i = 0; i < type->rank && type->extents[i] > 0; i++) {
        size /= (size_t)type->extents[i];
    }
    return size > 0 ? size : 1;
}

/* The constant's bytes in its file of external data; NULL: they are small, or not aligned, or
 * cannot be mapped. */
static void *map_external(const struct wpk_ort *ort, const struct ort_external_info *external,
                          const struct wpk_ort_type *type, const char *model_path,
                          struct wpk_constant_files *files, size_t *size)
{
    const char *name = ort->ExternalInitializerInfo_GetFilePath(external);
    int64_t offset = ort->ExternalInitializerInfo_GetFileOffset(external);
    *size = ort->ExternalInitializerInfo_GetByteSize(external);
    const char *slash = name[0] == '/' ? NULL : strrchr(model_path, '/');
    int folder_size = slash == NULL ? 0 : (int)(slash + 1 - model_path);
    char path[PATH_SIZE];
    int length = snprintf(path, sizeof(path), "%.*s%s", folder_size, model_path, name);
    if (length >= PATH_SIZE || offset < 0 || *size < OUTSIDE_SIZE_MIN ||
        (size_t)offset % element_size(type, *size) != 0) {
        return NULL;
    }
    return map(files, path, (size_t)offset, *size);
}

/* A tensor of the constant's type over mapped `data`, or with memory of its own. */
static struct ort_status *make_tensor(const struct wpk_ort *ort, const struct wpk_ort_type *type,
                                      void *data, size_t size, struct ort_value **out)
{
    struct ort_status *status = NULL;
    struct ort_memory_info *memory = NULL;
    struct ort_allocator *allocator;
    if (data != NULL) {
        WPK_ORT_TRY(ort->CreateCpuMemoryInfo(ORT_ALLOCATOR_DEVICE, ORT_MEMORY_DEFAULT, &memory));
        WPK_ORT_TRY(ort->CreateTensorWithDataAsOrtValue(memory, data, size, type->extents,
                                                        type->rank, type->element, out));
    } else {
        WPK_ORT_TRY(ort->GetAllocatorWithDefaultOptions(&allocator));
        WPK_ORT_TRY(
            ort->CreateTensorAsOrtValue(allocator, type->extents, type->rank, type->element, out));
    }
done:
    ort->ReleaseMemoryInfo(memory);
    return status;
}

static struct ort_status *copy_data(const struct wpk_ort *ort, const struct ort_value_info *info,
                                    struct ort_value *value)
{
    struct ort_status *status = NULL;
    const struct ort_value *source;
    struct wpk_ort_tensor from, to;
    WPK_ORT_TRY(ort->ValueInfo_GetInitializerValue(info, &source));
    WPK_ORT_TRY(wpk_ort_tensor(ort, source, &from));
    WPK_ORT_TRY(wpk_ort_tensor(ort, value, &to));
    if (from.size != to.size) {
        WPK_ORT_TRY(
            wpk_ort_fail(ort, "a constant has %zu bytes, its type %zu", from.size, to.size));
    }
    if (from.size > 0) {
        memcpy(to.data, from.data, from.size);
    }
done:
    return status;
}

struct ort_status *wpk_constant_add(const struct wpk_ort *ort, struct wpk_arena *arena,
                                    const struct ort_value_info *info, const char *model_path,
                                    struct wpk_constant_files *files, struct ort_graph *graph)
{
    struct ort_status *status = NULL;
    struct ort_external_info *external = NULL;
    struct ort_value *value = NULL;
    struct wpk_ort_type type;
    void *data = NULL;
    size_t size = 0;
    const char *name;
    WPK_ORT_TRY(wpk_ort_value_type(ort, arena, info, &type));
    WPK_ORT_TRY(ort->GetValueInfoName(info, &name));
    WPK_ORT_TRY(ort->ValueInfo_GetExternalInitializerInfo(info, &external));
    if (external != NULL) {
        data = map_external(ort, external, &type, model_path, files, &size);
    }
    WPK_ORT_TRY(make_tensor(ort, &type, data, size, &value));
    if (data == NULL) {
        WPK_ORT_TRY(copy_data(ort, info, value));
        WPK_ORT_TRY(ort->GetTensorSizeInBytes(value, &size));
    }
    WPK_ORT_TRY(ort->AddInitializerToGraph(graph, name, value, size >= OUTSIDE_SIZE_MIN));
    value = NULL;
done:
    ort->ReleaseValue(value);
    ort->ReleaseExternalInitializerInfo(external);
    return status;
}
