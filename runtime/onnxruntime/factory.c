/* SPDX-License-Identifier: Apache-2.0 */
/* The library's entry points: ONNX Runtime registers what CreateEpFactories() makes. */
#include "runtime/onnxruntime/session.h"

#define EXPORT __attribute__((visibility("default")))

struct factory {
    struct ort_ep_factory slots; /* first: ONNX Runtime has a pointer to it */
    struct wpk_ort ort;
};

/* One for the process, as the tables are: a program may unregister the library while a session of
 * the provider lives, and the library stays loaded (-z nodelete). */
static struct factory the_factory;

EXPORT struct ort_status *CreateEpFactories(const char *name, const struct ort_api_base *base,
                                            const struct ort_logger *logger,
                                            struct ort_ep_factory **factories, size_t max,
                                            size_t *count);
EXPORT struct ort_status *ReleaseEpFactory(struct ort_ep_factory *factory);

static const char *get_name(const struct ort_ep_factory *factory)
{
    return WPK_EP_NAME;
}

static const char *get_vendor(const struct ort_ep_factory *factory)
{
    return "Woodpecker";
}

static uint32_t get_vendor_id(const struct ort_ep_factory *factory)
{
    return 0; /* none of PCI's */
}

static const char *get_version(const struct ort_ep_factory *factory)
{
    return WPK_VERSION;
}

/* The CPU. Without information on an allocator its tensors are plain memory. */
static struct ort_status *get_devices(struct ort_ep_factory *factory,
                                      const struct ort_hardware_device *const *devices,
                                      size_t count, struct ort_ep_device **out, size_t out_max,
                                      size_t *out_count)
{
    const struct wpk_ort *ort = &((struct factory *)factory)->ort;
    *out_count = 0;
    for (size_t i = 0; i < count && *out_count < out_max; i++) {
        if (ort->HardwareDevice_Type(devices[i]) == ORT_DEVICE_CPU) {
            struct ort_status *status =
                ort->CreateEpDevice(factory, devices[i], NULL, NULL, &out[*out_count]);
            if (status != NULL) {
                return status;
            }
            (*out_count)++;
        }
    }
    return NULL;
}

static struct ort_status *create_ep(struct ort_ep_factory *factory,
                                    const struct ort_hardware_device *const *devices,
                                    const struct ort_pairs *const *metadata, size_t count,
                                    const struct ort_session_options *options,
                                    const struct ort_logger *logger, struct ort_ep **out)
{
    return wpk_session_make(&((struct factory *)factory)->ort, options, out);
}

static void release_ep(struct ort_ep_factory *factory, struct ort_ep *ep)
{
    wpk_session_release(ep);
}

/* Compiled models are not made. */
static struct ort_status *validate(struct ort_ep_factory *factory,
                                   const struct ort_hardware_device *const *devices, size_t count,
                                   const char *compatibility, int *out)
{
    *out = 0; /* not applicable */
    return NULL;
}

/* NULL stands for ONNX Runtime's own allocator of CPU memory, and for no stream. */
static struct ort_status *create_none(struct ort_ep_factory *factory, const void *owner,
                                      const struct ort_pairs *options, void **out)
{
    *out = NULL;
    return NULL;
}

static void release_allocator(struct ort_ep_factory *factory, struct ort_allocator *allocator)
{
}

static struct ort_status *create_data_transfer(struct ort_ep_factory *factory, void **out)
{
    *out = NULL;
    return NULL;
}

static bool is_stream_aware(const struct ort_ep_factory *factory)
{
    return false;
}

struct ort_status *CreateEpFactories(const char *name, const struct ort_api_base *base,
                                     const struct ort_logger *logger,
                                     struct ort_ep_factory **factories, size_t max, size_t *count)
{
    *count = 0;
    struct wpk_ort ort = {0};
    struct ort_status *status = wpk_ort_open(base, &ort);
    if (status != NULL || ort.CreateStatus == NULL || max == 0) {
        return status;
    }
    the_factory.ort = ort;
    the_factory.slots = (struct ort_ep_factory){
        .version = WPK_ORT_VERSION,
        .GetName = get_name,
        .GetVendor = get_vendor,
        .GetSupportedDevices = get_devices,
        .CreateEp = create_ep,
        .ReleaseEp = release_ep,
        .GetVendorId = get_vendor_id,
        .GetVersion = get_version,
        .ValidateCompiledModelCompatibilityInfo = validate,
        .CreateAllocator = create_none,
        .ReleaseAllocator = release_allocator,
        .CreateDataTransfer = create_data_transfer,
        .IsStreamAware = is_stream_aware,
        .CreateSyncStreamForDevice = create_none,
    };
    factories[0] = &the_factory.slots;
    *count = 1;
    return NULL;
}

struct ort_status *ReleaseEpFactory(struct ort_ep_factory *factory)
{
    return NULL;
}
