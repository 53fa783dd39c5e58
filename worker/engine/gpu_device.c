/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/engine/gpu_device.h"

#include "common/cuda_machine.h"
#include "runtime/gpu/cuda_driver.h"
#include "runtime/vendor/gpu_vendor.h"
#include "target/codegen.h"
#include "target/gpu/build.h"
#include "target/gpu/nvrtc.h"
#include "worker/provider/provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_PER_MAJOR 1000
#define CLOCKS_TEXT_MAX 256

static bool is_emulated(const struct wpk_gpu_wanted *wanted)
{
    return wanted->which != NULL && strcmp(wanted->which, WPK_DEVICE_EMULATED) == 0;
}

/* The driver numbers devices by their speed unless it is told otherwise. */
static wpk_err choose(const struct wpk_gpu_wanted *wanted)
{
    char name[WPK_CUDA_UUID_TEXT_MAX];
    wpk_cuda_driver_name_uuid(wanted->which, name);
    return setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1) == 0 &&
                   setenv("CUDA_VISIBLE_DEVICES", name, 1) == 0
               ? WPK_OK
               : WPK_ENOMEM;
}

static wpk_err open_driver(const struct wpk_gpu_wanted *wanted,
                           const struct wpk_cuda_driver **driver, struct wpk_diag *diag)
{
    wpk_err err = is_emulated(wanted) ? WPK_OK : choose(wanted);
    err = err == WPK_OK ? wpk_cuda_driver_open(is_emulated(wanted), driver, diag) : err;
    if (err == WPK_ENOENT && !is_emulated(wanted)) {
        size_t used = strlen(diag->text);
        snprintf(diag->text + used, sizeof(diag->text) - used, "; --gpu emulated needs no GPU");
    }
    return err;
}

/* A candidate's process, a spare and a probe have contexts at the same time. */
static wpk_err check_mode(const struct wpk_cuda_driver *driver, struct wpk_diag *diag)
{
    int device = 0, mode = WPK_CUDA_COMPUTE_MODE_DEFAULT;
    int result = driver->cuDeviceGet(&device, 0);
    if (result == WPK_CUDA_SUCCESS) {
        result = driver->cuDeviceGetAttribute(&mode, WPK_CUDA_DEVICE_COMPUTE_MODE, device);
    }
    if (result != WPK_CUDA_SUCCESS) {
        return wpk_cuda_driver_fail(driver, result, "asking for the GPU's compute mode", diag);
    }
    if (mode == WPK_CUDA_COMPUTE_MODE_DEFAULT) {
        return WPK_OK;
    }
    return wpk_fail(diag, WPK_EUNSUPPORTED,
                    "the GPU's compute mode is %s: a worker needs several processes on it; set it "
                    "with nvidia-smi --compute-mode=DEFAULT",
                    mode == WPK_CUDA_COMPUTE_MODE_PROHIBITED ? "prohibited" : "exclusive-process");
}

static wpk_err open_device(const struct wpk_cuda_driver *driver, struct wpk_device *out,
                           struct wpk_diag *diag)
{
    wpk_err err = wpk_cuda_driver_device(driver, 0, out, diag);
    return err == WPK_OK ? check_mode(driver, diag) : err;
}

/* A library for GPUs knows none that is emulated. */
static wpk_err find_vendor(const struct wpk_gpu_wanted *wanted, const char *name,
                           const struct wpk_gpu_vendor **out, struct wpk_diag *diag)
{
    wpk_err err = wpk_gpu_vendor_open(name, NULL, out, diag);
    if (err == WPK_OK && (*out)->emulated != is_emulated(wanted)) {
        return wpk_fail(diag, WPK_ENOENT, "version %s is for %s", (*out)->version,
                        (*out)->emulated ? "the emulated GPU" : "GPUs");
    }
    return err;
}

/* List the libraries, and append their versions to the environment. */
static void add_vendors(const struct wpk_gpu_wanted *wanted, struct wpk_gpu_device *out)
{
    const char *const *names = NULL;
    int count = wpk_gpu_vendor_names(&names);
    for (int i = 0; i < count && i < WPK_GPU_VENDORS_MAX; i++) {
        const struct wpk_gpu_vendor *vendor = NULL;
        size_t used = strlen(out->environment);
        if (find_vendor(wanted, names[i], &vendor, NULL) == WPK_OK) {
            out->vendors[out->vendor_count++] = names[i];
            snprintf(out->environment + used, sizeof(out->environment) - used, ";%s=%s", names[i],
                     vendor->version);
        }
    }
}

static void print_vendors(const struct wpk_gpu_wanted *wanted)
{
    const char *const *names = NULL;
    int count = wpk_gpu_vendor_names(&names);
    for (int i = 0; i < count; i++) {
        const struct wpk_gpu_vendor *vendor = NULL;
        struct wpk_diag why = {0};
        wpk_err err = find_vendor(wanted, names[i], &vendor, &why);
        printf("%-11s %s%s\n", names[i],
               err == WPK_OK ? vendor->version : "none: ", err == WPK_OK ? "" : why.text);
    }
}

wpk_err wpk_gpu_device_describe(const struct wpk_gpu_wanted *wanted, const char *codegen,
                                struct wpk_gpu_device *out, struct wpk_diag *diag)
{
    const struct wpk_cuda_driver *driver = NULL;
    char version[WPK_CODEGEN_VERSION_MAX];
    char driver_item[32] = "";
    wpk_err err = WPK_OK;
    out->vendor_count = 0;
    if (wanted->compiler != NULL) {
        snprintf(version, sizeof version, "%s", wanted->compiler);
    } else {
        err = wpk_codegen_at(wpk_back_end_first("cuda"))->find(version, diag);
    }
    if (err == WPK_OK && wanted->architecture != NULL) {
        err = wpk_device_emulate(wanted->architecture, 1, &out->device, diag);
    } else if (err == WPK_OK) {
        err = open_driver(wanted, &driver, diag);
        err = err == WPK_OK ? open_device(driver, &out->device, diag) : err;
        if (err == WPK_OK) {
            snprintf(driver_item, sizeof(driver_item), ";driver=%d",
                     driver->version / VERSION_PER_MAJOR);
        }
    }
    const char *number = strchr(version, '-');
    snprintf(out->environment, sizeof(out->environment), "%s;nvrtc=%s%s", codegen,
             err == WPK_OK && number != NULL ? number + 1 : version, driver_item);
    if (err == WPK_OK && wanted->architecture == NULL) {
        add_vendors(wanted, out);
    }
    return err;
}

/* Print what compiles for GPUs here. True if CUDA C is compiled: nothing else has to be there. */
static bool print_compilers(void)
{
    const int first = wpk_back_end_first("cuda");
    const unsigned of_kind = wpk_back_ends_of("cuda");
    const char *ptxas = wpk_cuda_ptxas_find();
    bool compiles = false;
    for (int i = first; wpk_codegen_at(i) != NULL; i++) {
        char version[WPK_CODEGEN_VERSION_MAX];
        struct wpk_diag why = {0};
        if ((of_kind & 1U << i) == 0) {
            continue;
        }
        bool found = wpk_codegen_at(i)->find(version, &why) == WPK_OK;
        compiles = compiles || (i == first && found);
        printf("%-11s %s%s\n", i == first ? "compiler" : wpk_codegen_at(i)->name,
               i == first || found ? "" : "none: ", found ? version : why.text);
    }
    printf("%-11s %s\n", "ptxas", ptxas != NULL ? ptxas : "none: run make setup-gpu");
    return compiles;
}

static wpk_err check_architecture(const char *architecture, struct wpk_diag *diag)
{
    struct wpk_device device;
    struct wpk_cuda_nvrtc nvrtc;
    wpk_err err = wpk_device_emulate(architecture, 1, &device, diag);
    err = err == WPK_OK ? wpk_cuda_nvrtc_open(&nvrtc, NULL, diag) : err;
    if (err != WPK_OK) {
        return err;
    }
    if (!wpk_cuda_nvrtc_knows(&nvrtc, architecture)) {
        err = wpk_fail(diag, WPK_EINVAL, "%s does not know %s", nvrtc.version, architecture);
    }
    wpk_cuda_nvrtc_close(&nvrtc);
    return err;
}

bool wpk_gpu_device_check(const struct wpk_gpu_wanted *wanted)
{
    const struct wpk_cuda_driver *driver = NULL;
    struct wpk_device device;
    struct wpk_diag diag = {0};
    char class[2 * WPK_DEVICE_TEXT_MAX], clocks[CLOCKS_TEXT_MAX];
    bool compiles = print_compilers();
    if (wanted->architecture != NULL) {
        bool builds = check_architecture(wanted->architecture, &diag) == WPK_OK;
        printf("%-11s %s%s\n", "builds for",
               builds ? "" : "none: ", builds ? wanted->architecture : diag.text);
        return builds;
    }
    wpk_err err = open_driver(wanted, &driver, &diag);
    print_vendors(wanted);
    if (err == WPK_OK) {
        printf("%-11s %d.%d%s\n", "driver", driver->version / VERSION_PER_MAJOR,
               driver->version % VERSION_PER_MAJOR / 10,
               is_emulated(wanted) ? " (emulated: kernels are verified, not timed)" : "");
        err = open_device(driver, &device, &diag);
    }
    if (err != WPK_OK) {
        printf("%-11s none: %s\n", "device", diag.text);
        return false;
    }
    wpk_device_class(&device, class, sizeof(class));
    printf("%-11s %s, %s, %lld MiB\n", "device", class, device.instance,
           (long long)device.cuda.memory_bytes >> 20);
    /* Ranks of first candidates depend on them, verified results and times do not. */
    struct wpk_cuda_machine machine;
    wpk_cuda_machine(device.cuda.capability, device.cuda.sm_count, &machine);
    printf("%-11s %s%s\n", "rates", machine.rates_of,
           machine.rates_known
               ? ""
               : ": those of this architecture are not known, and first candidates may be poor");
    wpk_nvml_describe(is_emulated(wanted), clocks, sizeof(clocks));
    printf("%-11s %s\n", "clocks", clocks);
    if (!compiles) {
        puts("this machine can work with --run-only");
    }
    return compiles || wanted->compiler != NULL;
}
