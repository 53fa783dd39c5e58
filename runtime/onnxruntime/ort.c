/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/onnxruntime/ort.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* CreateStatus is the first function of every version's table. */
static struct ort_status *say_too_old(const struct ort_api_base *base)
{
    const ort_entry *table = base->GetApi(1);
    if (table == NULL) {
        return NULL;
    }
    struct wpk_ort ort = {.CreateStatus = (struct ort_status * (*)(int, const char *)) table[0]};
    return wpk_ort_fail(&ort, "Woodpecker needs ONNX Runtime 1.%d or newer, this is %s",
                        WPK_ORT_VERSION, base->GetVersionString());
}

struct ort_status *wpk_ort_open(const struct ort_api_base *base, struct wpk_ort *ort)
{
    const ort_entry *table = base->GetApi(WPK_ORT_VERSION);
    if (table == NULL) {
        return say_too_old(base);
    }
    ort->hides_bodies = wpk_begins(base->GetVersionString(), "1.23.");
#define LOAD(ordinal, name, result, parameters) ort->name = (result(*) parameters)table[ordinal];
#define LOAD_STATUS(ordinal, name, parameters) LOAD(ordinal, name, struct ort_status *, parameters)
    ORT_API_LIST(LOAD, LOAD_STATUS)
    table = ort->GetEpApi();
    ORT_EP_API_LIST(LOAD, LOAD_STATUS)
    table = ort->GetModelEditorApi();
    ORT_MODEL_EDITOR_API_LIST(LOAD, LOAD_STATUS)
#undef LOAD_STATUS
#undef LOAD
    return NULL;
}

struct ort_status *wpk_ort_fail(const struct wpk_ort *ort, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return ort->CreateStatus(ORT_FAIL, text);
}

struct ort_status *wpk_ort_value_type(const struct wpk_ort *ort, struct wpk_arena *arena,
                                      const struct ort_value_info *value, struct wpk_ort_type *out)
{
    const struct ort_type_info *info = NULL;
    struct ort_status *status = ort->GetValueInfoTypeInfo(value, &info);
    return status != NULL ? status : wpk_ort_type(ort, arena, info, out);
}

struct ort_status *wpk_ort_type(const struct wpk_ort *ort, struct wpk_arena *arena,
                                const struct ort_type_info *info, struct wpk_ort_type *out)
{
    struct ort_status *status = NULL;
    const struct ort_shape_info *shape = NULL;
    *out = (struct wpk_ort_type){0};
    if (info != NULL) {
        WPK_ORT_TRY(ort->CastTypeInfoToTensorInfo(info, &shape));
    }
    if (shape != NULL) {
        WPK_ORT_TRY(ort->GetTensorElementType(shape, &out->element));
        WPK_ORT_TRY(ort->GetDimensionsCount(shape, &out->rank));
        WPK_ORT_TAKE(arena, out->rank, out->extents);
        WPK_ORT_TAKE(arena, out->rank, out->symbols);
        WPK_ORT_TRY(ort->GetDimensions(shape, out->extents, out->rank));
        WPK_ORT_TRY(ort->GetSymbolicDimensions(shape, out->symbols, out->rank));
    }
done:
    return status;
}

struct ort_status *wpk_ort_tensor(const struct wpk_ort *ort, const struct ort_value *value,
                                  struct wpk_ort_tensor *out)
{
    struct ort_status *status = NULL;
    struct ort_shape_info *shape = NULL;
    const void *data = NULL;
    WPK_ORT_TRY(ort->GetTensorTypeAndShape(value, &shape));
    WPK_ORT_TRY(ort->GetTensorElementType(shape, &out->element));
    WPK_ORT_TRY(ort->GetDimensionsCount(shape, &out->rank));
    if (out->rank > WPK_ORT_RANK_MAX) {
        WPK_ORT_TRY(wpk_ort_fail(ort, "a tensor has %zu axes", out->rank));
    }
    WPK_ORT_TRY(ort->GetDimensions(shape, out->extent, out->rank));
    WPK_ORT_TRY(ort->GetTensorSizeInBytes(value, &out->size));
    WPK_ORT_TRY(ort->GetTensorData(value, &data));
    out->data = (void *)(uintptr_t)data;
done:
    ort->ReleaseTensorTypeAndShapeInfo(shape);
    return status;
}
