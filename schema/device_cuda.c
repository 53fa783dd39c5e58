/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU's class has its multiprocessors: rules of the search read them, and one model is sold with
 * different numbers of them. */
#include "schema/device.h"

#include "common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CAPABILITY_MAX 999

bool wpk_device_is_cuda(const struct wpk_device *device)
{
    return strcmp(device->kind, WPK_DEVICE_CUDA) == 0;
}

bool wpk_device_is_emulated(const struct wpk_device *device)
{
    return wpk_device_is_cuda(device) && strcmp(device->model, WPK_DEVICE_EMULATED) == 0;
}

bool wpk_device_class_is_emulated(const char *text)
{
    static const char head[] = WPK_DEVICE_CUDA "/" WPK_DEVICE_EMULATED "/";
    return strncmp(text, head, strlen(head)) == 0;
}

/* The number of an architecture, up to `end`; 0: it is none. */
static int read_architecture(const char *text, const char *end)
{
    static const char head[] = "sm_";
    char *rest = NULL;
    bool begins = strncmp(text, head, strlen(head)) == 0 && text[strlen(head)] >= '1' &&
                  text[strlen(head)] <= '9';
    long number = begins ? strtol(text + strlen(head), &rest, 10) : 0;
    return rest == end && number >= WPK_DEVICE_CUDA_LEAST && number <= CAPABILITY_MAX ? (int)number
                                                                                      : 0;
}

wpk_err wpk_device_emulate(const char *architecture, int sm_count, struct wpk_device *out,
                           struct wpk_diag *diag)
{
    struct wpk_device device = {
        .kind = WPK_DEVICE_CUDA, .model = WPK_DEVICE_EMULATED, .core_count = 1};
    char host[64] = "";
    device.cuda.capability = read_architecture(architecture, architecture + strlen(architecture));
    device.cuda.sm_count = sm_count;
    if (device.cuda.capability == 0) {
        wpk_diag_set(diag, "'%.24s' is no architecture of a GPU, such as sm_90", architecture);
        return WPK_EINVAL;
    }
    if (sm_count < 1 || sm_count > WPK_DEVICE_SM_MAX) {
        wpk_diag_set(diag, "a GPU has 1 to %d multiprocessors", WPK_DEVICE_SM_MAX);
        return WPK_ERANGE;
    }
    if (gethostname(host, sizeof(host) - 1) != 0) {
        return WPK_ESYSTEM;
    }
    snprintf(device.instance, sizeof(device.instance), "%s/" WPK_DEVICE_EMULATED, host);
    *out = device;
    return WPK_OK;
}

void wpk_device_cuda_class(const struct wpk_device *device, char *out, size_t size)
{
    snprintf(out, size, WPK_DEVICE_CUDA "/%s/sm_%d/%d", device->model, device->cuda.capability,
             device->cuda.sm_count);
}

wpk_err wpk_device_cuda_of_class(const char *text, struct wpk_device *out)
{
    static const char head[] = WPK_DEVICE_CUDA "/";
    struct wpk_device device = {.kind = WPK_DEVICE_CUDA, .core_count = 1};
    char again[2 * WPK_DEVICE_TEXT_MAX];
    const char *last = strrchr(text, '/'), *model = text + strlen(head);
    const char *architecture = last;
    if (strncmp(text, head, strlen(head)) != 0 || last <= model) {
        return WPK_EPARSE;
    }
    while (architecture > model && architecture[-1] != '/') {
        architecture--;
    }
    size_t length = architecture <= model ? 0 : (size_t)(architecture - 1 - model);
    if (length == 0 || length >= sizeof(device.model)) {
        return WPK_EPARSE;
    }
    memcpy(device.model, model, length);
    device.cuda.capability = read_architecture(architecture, last);
    long count = strtol(last + 1, NULL, 10);
    device.cuda.sm_count = count >= 1 && count <= WPK_DEVICE_SM_MAX ? (int)count : 0;
    wpk_device_cuda_class(&device, again, sizeof(again));
    if (device.cuda.capability == 0 || device.cuda.sm_count == 0 || strcmp(again, text) != 0) {
        return WPK_EPARSE;
    }
    *out = device;
    return WPK_OK;
}

void wpk_device_cuda_put(struct wpk_json_writer *w, const struct wpk_device *device)
{
    wpk_json_put_text(w, "kind", device->kind);
    wpk_json_put_text(w, "model", device->model);
    wpk_json_put_int(w, "capability", device->cuda.capability);
    wpk_json_put_int(w, "sm_count", device->cuda.sm_count);
    wpk_json_put_int(w, "memory_bytes", device->cuda.memory_bytes);
    wpk_json_put_int(w, "driver", device->cuda.driver);
    wpk_json_put_text(w, "instance", device->instance);
}

void wpk_device_cuda_get(struct wpk_json_reader *r, struct wpk_device *out)
{
    WPK_JSON_ALLOW(r, "kind", "model", "capability", "sm_count", "memory_bytes", "driver",
                   "instance");
    *out = (struct wpk_device){.kind = WPK_DEVICE_CUDA, .core_count = 1};
    wpk_json_get_label(r, "model", out->model, sizeof(out->model));
    out->cuda.capability =
        (int)wpk_json_get_int(r, "capability", WPK_DEVICE_CUDA_LEAST, CAPABILITY_MAX);
    out->cuda.sm_count = (int)wpk_json_get_int(r, "sm_count", 1, WPK_DEVICE_SM_MAX);
    out->cuda.memory_bytes = wpk_json_get_int(r, "memory_bytes", 0, WPK_JSON_INT_MAX);
    out->cuda.driver = (int)wpk_json_get_int(r, "driver", 0, INT32_MAX);
    wpk_json_get_label(r, "instance", out->instance, sizeof(out->instance));
}
